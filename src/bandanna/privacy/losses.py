"""Privacy loss distributions of continuous noise, by dp-accounting."""

from __future__ import annotations

from functools import lru_cache

from bandanna.privacy.mechanism import Numerics, PrivacyLoss


@lru_cache(maxsize=16)
def continuous_laplace_loss(scale: float, numerics: Numerics) -> PrivacyLoss:
    """Return dp-accounting's privacy loss distribution of Laplace noise, sensitivity 1."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

    loss: PrivacyLoss = pld.from_laplace_mechanism(
        scale,
        sensitivity=1,
        pessimistic_estimate=numerics.pessimistic,
        value_discretization_interval=numerics.step,
    )
    return loss


@lru_cache(maxsize=16)  # one takes a tenth of a second, and a certificate asks several times
def gaussian_loss(sigma: float, numerics: Numerics | None = None) -> PrivacyLoss:
    """Return dp-accounting's privacy loss distribution of Gaussian noise, sensitivity 1."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

    step, pessimistic = numerics or Numerics(min(1e-4, 1.0 / (2000.0 * sigma)))
    loss: PrivacyLoss = pld.from_gaussian_mechanism(
        sigma,
        sensitivity=1,
        pessimistic_estimate=pessimistic,
        value_discretization_interval=step,
    )
    return loss
