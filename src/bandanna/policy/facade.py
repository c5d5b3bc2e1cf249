"""The policies that users hold: private, plain, around other libraries' learners.

Their constructors take what ``bandanna.spec.Spec`` declares: signatures and the descriptions of
parameters are made from it. ``load`` reads what ``save`` wrote.
"""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar, Unpack

from bandanna._core import checks
from bandanna._core.types import (
    JSON,
    ArmName,
    BandannaError,
    StateFileError,
)
from bandanna.learners import Learner
from bandanna.policy.adapters import ForeignLearner, adapt, checked_learner, required_learner
from bandanna.policy.codec import load_state, migrated
from bandanna.policy.parts import (
    Recipe,
    Resolved,
    fitted,
    follows_experts,
    plain_recipe,
    private_parts,
    recipe_around,
    recipe_of,
    row_of_catalogue,
)
from bandanna.policy.policy import Policy
from bandanna.spec import (
    ExpertsOptions,
    Options,
    OptionsAround,
    Spec,
    arm_names,
    defaults,
    expert_names,
    parameters,
    spec_from_dict,
    types,
)
from bandanna.theory.tuning import Tuning

Kind = TypeVar("Kind", bound=Policy)

SEED = "Makes the draws of arms repeatable. The noise that protects people never is."


def _described(**texts: str) -> Callable[[type[Kind]], type[Kind]]:
    """Give a class the signature and the parameters' descriptions that ``Spec`` declares.

    ``texts`` replace descriptions, or add those of parameters that are not in a Spec.
    """

    def describe(cls: type[Kind]) -> type[Kind]:
        taken = inspect.signature(cls.__init__, eval_str=True).parameters.values()
        own = [one for one in taken if one.kind is not inspect.Parameter.VAR_KEYWORD][1:]
        names = [one.name for one in own]
        further = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=types()[name]
            )
            for name, value in defaults().items()
            if name not in names and name in _keywords(cls.__name__)
        ]
        by_position = [one for one in own if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        by_name = [one for one in own if one.kind is inspect.Parameter.KEYWORD_ONLY]
        everything = [*by_position, *further, *by_name]
        cls.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
        told = {name: one.help for name, one in parameters().items()} | {"seed": SEED} | texts
        lines = [
            line
            for one in everything
            for line in (
                one.name,
                *textwrap.wrap(told[one.name], 92, initial_indent="    ", subsequent_indent="    "),
            )
        ]
        assert cls.__doc__ is not None
        cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("{parameters}", "\n".join(lines))
        return cls

    return describe


def _keywords(kind: str) -> set[str]:
    """Return what a constructor takes by keyword, of what ``Spec`` declares."""
    if kind in ("Bandit", "Experts"):
        return set()  # all of theirs are written out
    experts = kind == "PrivateExperts"
    return {
        name
        for name, one in parameters().items()
        if (one.experts or not experts) and name not in ("arms", "epsilon", "experts")
    }


def _private(
    kind: str,
    arms: tuple[ArmName, ...],
    experts: tuple[ArmName, ...] | None,
    epsilon: float,
    delta: float,
    rounds: int | None,
    options: JSON,
) -> Resolved:
    """Return what a private policy is made of, from what its constructor was given."""
    unknown = [name for name in options if name not in _keywords(kind)]
    if unknown:
        close = difflib.get_close_matches(unknown[0], _keywords(kind), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"{kind}() got an unexpected keyword argument {unknown[0]!r}{hint}")
    learner = checked_learner(options.get("learner"), arms if experts is None else experts)
    spec = Spec(kind, arms, checks.epsilon(epsilon), delta, rounds, experts, **options)
    return private_parts(spec.but(learner=learner))


def _plain(
    kind: str,
    arms: tuple[ArmName, ...],
    experts: tuple[ArmName, ...] | None,
    rounds: int | None,
    learner: object,
    options: JSON,
) -> tuple[Spec, Recipe]:
    """Return what a policy without privacy is made of."""
    given = required_learner(learner, arms if experts is None else experts)
    spec = Spec(
        kind,
        arms,
        rounds=rounds,
        experts=experts,
        algorithm=given if isinstance(given, str) else given.name,
        learner=given if isinstance(given, ForeignLearner) else None,
        **options,
    )
    return spec, plain_recipe(given, spec.problem, options.get("batch", 1))


@_described(
    algorithm="phased-net (default), phased, adaptive, one-bit, one-bit-exp3 (the smallest "
    "guarantee for few arms), one-bit-tsallis (for many), dp-klucb, race, ab-test, or the paper's "
    "htinf, exp3 and ftpl.",
    delta="With per_person: what a person's slots may cost besides epsilon; 0 is pure.",
)
class PrivateBandit(Policy):
    """Choose among arms, again and again, without revealing anyone's feedback.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bandanna as bd
    >>> bandit = bd.PrivateBandit(arms=["drug A", "drug B"], epsilon=0.5, rounds=10_000)
    >>> decision = bandit.decide()
    >>> bandit.observe(decision, loss=0.3)
    >>> bandit.guarantee.epsilon, bandit.guarantee.delta, bandit.guarantee.model
    (0.5, 0.0, 'central')
    """

    saved_as: ClassVar[str | None] = "PrivateBandit"

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        epsilon: float,
        rounds: int | None = None,
        algorithm: str | None = None,
        *,
        delta: float = 0.0,
        seed: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        size = arm_names(arms), None, epsilon, delta, rounds
        parts = _private("PrivateBandit", *size, {"algorithm": algorithm, **options})
        super().__init__(parts.spec, parts.recipe, why=parts.why, seed=seed)


@_described(
    algorithm="auto (default) is adaptive with few experts and one-bit-exp4 with many; policy.why "
    "says which and why. Algorithms for arms take each expert as an arm and follow one in a batch: "
    "adaptive, dp-klucb, one-bit, one-bit-exp3, one-bit-tsallis, htinf, exp3, ftpl. EXP4 weighs "
    "all: one-bit-exp4, and the paper's local-exp4 and batched-exp4.",
    experts="Number of experts N, or their names.",
    rounds="How many decisions are expected. Needed by EXP4, exp3 and ftpl.",
    delta="What may be spent besides epsilon. Only batched-exp4 uses it, and per_person.",
)
class PrivateExperts(Policy):
    """Choose among arms by experts' advice without revealing anyone's feedback.

    With ``per_person`` a slot follows one expert; EXP4 credits each round by its own advice, so
    there a slot is one round.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bandanna as bd
    >>> policy = bd.PrivateExperts(experts=3, arms=2, epsilon=0.5, rounds=10_000)
    >>> decision = policy.decide([0, 0, 1])
    >>> policy.observe(decision, loss=0.3)
    >>> policy.algorithm
    'adaptive'
    """

    saved_as: ClassVar[str | None] = "PrivateExperts"

    def __init__(
        self,
        experts: int | Sequence[ArmName],
        arms: int | Sequence[ArmName],
        epsilon: float,
        delta: float = 0.0,
        rounds: int | None = None,
        algorithm: str | None = None,
        *,
        seed: int | None = None,
        **options: Unpack[ExpertsOptions],
    ) -> None:
        size = arm_names(arms), expert_names(experts), epsilon, delta, rounds
        parts = _private("PrivateExperts", *size, {"algorithm": algorithm, **options})
        super().__init__(parts.spec, parts.recipe, why=parts.why, seed=seed)


@_described(
    learner="tsallis-inf (default), tsallis-inf-iw, htinf, exp3, ftpl, adaptive, kl-ucb and "
    "thompson (the strongest where losses are steady), phased, ab-test and race as private bandits "
    "play them, uniform, a learner object, or one of another library.",
    rounds="How many decisions are expected; exp3 and ftpl need it.",
    batch="Rounds for which an arm is kept.",
)
class Bandit(Policy):
    """The same bandit without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Bandit(arms=2, learner="exp3", rounds=1000).guarantee.private
    False
    """

    saved_as: ClassVar[str | None] = "Bandit"

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        learner: object = "tsallis-inf",
        rounds: int | None = None,
        *,
        batch: int = 1,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        counted = {"loss_range": loss_range, "default_loss": default_loss, "clip": clip}
        size = arm_names(arms), None, rounds
        super().__init__(*_plain("Bandit", *size, learner, {"batch": batch, **counted}), seed=seed)


@_described(
    experts="Number of experts N, or their names.",
    learner="A bandit learner over experts, by name or object, such as adaptive (default) or "
    "thompson; exp4 and centred-exp4, which need rounds; uniform (any arm, no advice); or "
    "random-expert (a new expert each round).",
)
class Experts(Policy):
    """The same without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Experts(experts=3, arms=2, rounds=1000).guarantee.private
    False
    """

    saved_as: ClassVar[str | None] = "Experts"

    def __init__(
        self,
        experts: int | Sequence[ArmName],
        arms: int | Sequence[ArmName],
        rounds: int | None = None,
        learner: Learner | str = "adaptive",
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        counted = {"loss_range": loss_range, "default_loss": default_loss, "clip": clip}
        size = arm_names(arms), expert_names(experts), rounds
        super().__init__(*_plain("Experts", *size, learner, counted), seed=seed)


def privatize(
    learner: object,
    arms: int | Sequence[ArmName],
    epsilon: float,
    rounds: int | None = None,
    *,
    delta: float = 0.0,
    seed: int | None = None,
    **options: Unpack[OptionsAround],
) -> PrivateBandit:
    """Make any bandit without contexts private (the paper's Theorem "Generic Conversion").

    A learner object is copied, so that nobody else can feed it what was not released; it must not
    have learned from private data before. With the default one-bit release it sees losses that
    are 0 or 1; with ``"laplace"`` it must survive negative and unbounded ones.

    Parameters
    ----------
    learner
        A learner by name or object; river's ``bandit.Policy``; MABWiser's ``MAB``; any object
        with ``draw()`` and ``update(arm, loss)``; or a function that takes a seed and makes one.
    arms, epsilon, rounds, delta, seed
        As for ``PrivateBandit``.
    **options
        Everything else that ``PrivateBandit`` takes; ``release`` is ``"one-bit"`` by default.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.privatize("htinf", arms=3, epsilon=0.5).guarantee.epsilon
    0.5
    """
    options.setdefault("release", "one-bit")
    around = required_learner(learner, arm_names(arms))
    return PrivateBandit(arms, epsilon, rounds, delta=delta, seed=seed, learner=around, **options)


# --- loading ----------------------------------------------------------------------------------

KINDS: dict[str, type[Policy]] = {
    kind.__name__: kind for kind in (PrivateBandit, Bandit, PrivateExperts, Experts)
}
PRIVATE_KINDS = ("PrivateBandit", "PrivateExperts")
DAMAGE = (
    *(BandannaError, ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)


def reason_of(error: Exception) -> str:
    """Say what is wrong with a file, without repeating what is in it."""
    kind = type(error).__name__
    if isinstance(error, BandannaError):
        return f"{kind}: {error}"
    said = str(error).partition(":")[0] if isinstance(error, ValueError) else "impossible values"
    return f"{kind}: {said}"


def policy_from_dict(data: JSON, *, latest: bool = False, learner: object = None) -> Policy:
    """Make a policy from what ``Policy.to_dict`` returned, checking every value anew.

    ``latest`` promises that nothing was decided after ``data``: it then keeps its identity.
    ``learner`` is a fresh one where it is another library's.
    """
    data = migrated(data)
    spec = spec_from_dict(data["spec"])
    kind = KINDS[spec.kind]
    choices = spec.arms if spec.experts is None else spec.experts
    recipe = _saved_recipe(data, choices, learner)
    if (spec.experts is None) != issubclass(kind, PrivateBandit | Bandit):
        raise ValueError(f"a {spec.kind} does not go with experts {spec.experts!r}")
    if (spec.kind in PRIVATE_KINDS) != recipe.release.guarantee().private:
        raise ValueError(f"a {spec.kind} does not go with a {recipe.release.name} release")
    row = row_of_catalogue(spec) if spec.kind == "PrivateExperts" else None
    if row is not None and row.over is not None and not follows_experts(recipe, spec.num_experts):
        raise ValueError(f"its parts do not make {spec.algorithm!r}")
    if spec.algorithm is None or fitted(spec, recipe) != spec:
        raise ValueError("its parts do not fit together")
    policy = object.__new__(kind)
    last = len(spec.arms) - 1
    retired = [checks.whole("retired", arm, 0, last) for arm in data["learned"]["retired"]]
    why = "It was loaded from a file."
    Policy.__init__(policy, spec, recipe, why=why, retired=retired)
    load_state(policy.state, data, policy.limits(), latest=latest)
    return policy


def _saved_recipe(data: JSON, choices: tuple[ArmName, ...], learner: object) -> Recipe:
    """Make learner and release of a saved policy, whose learner may have to be given."""
    saved = data["learner"]
    if saved["name"] != ForeignLearner.name:
        if learner is not None:
            raise StateFileError(
                f"its learner is Bandanna's own {saved['name']} and is in the file; leave out "
                f"learner=."
            )
        return recipe_of(Tuning(saved, data["release"]))
    if learner is None:
        raise StateFileError(
            f"its learner is a {saved['label']}, which is not in the file: pass a fresh one with "
            f"the same settings, or the function that made it, as learner=."
        )
    return recipe_around(adapt(learner, choices), data["release"])
