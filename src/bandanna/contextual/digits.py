"""Handwritten digits as a contextual bandit: the ten digits are arms, and the right one earns 1."""

from __future__ import annotations

from bandanna._core.extras import need
from bandanna.contextual.features import Fitted
from bandanna.contextual.simulation import ContextTable

PUBLIC_IMAGES = 600
"""The first images count as public; people are drawn from the others."""


def digits_table(components: int | None = 20) -> ContextTable:
    """Return scikit-learn's digits as a table of contexts.

    Parameters
    ----------
    components
        Encode images by so many principal components of the public ones. None: by the means of 2 by
        2 pixels, with the range that pixels have, and all images.
    """
    need("digits", "the digits")
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    data = load_digits()
    if components is None:
        pixels = data.data.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)
        columns = {f"pixel {i}": column for i, column in enumerate(pixels.T)}
        return ContextTable.from_labels(columns, dict.fromkeys(columns, (0, 16)), data.target)
    public, others = data.data[:PUBLIC_IMAGES], data.data[PUBLIC_IMAGES:]
    encoder = Fitted(PCA(components, random_state=0).fit(public), public)
    return ContextTable.from_labels(others, encoder, data.target[PUBLIC_IMAGES:])
