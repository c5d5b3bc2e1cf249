"""What can be proved: bounds, the parameters they need, and the choices they justify."""
