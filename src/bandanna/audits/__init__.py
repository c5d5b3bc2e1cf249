"""Attacks on releases and policies: what is found is real, finding nothing proves nothing."""
