"""Arms that are added to a policy under way, and arms that are retired from it."""

from __future__ import annotations

from bandanna._core.types import ArmName, InputError
from bandanna.policies.inputs import arm_index, arm_names
from bandanna.policies.shown import Shown


class Changing(Shown):
    """The part of a policy that changes which arms there are.

    Indices of arms never change: a retired arm keeps its own, and an added one takes the next.
    Batches that have begun go on; from the next one on the learner draws among the arms there are.
    """

    def add_arm(self, name: ArmName) -> int:
        """Add an arm; the next batch may play it. Returns its index.

        It starts level with the best one, or as unknown where arms are ranked. Decide on it by
        what is public: neither privacy nor estimates suffer. ``docs/theory/arms.md`` says what is
        left of the regret bound.

        Parameters
        ----------
        name
            Its name, another than those of all arms so far.

        Examples
        --------
        >>> import bandanna as bd
        >>> bandit = bd.PrivateBandit(["red", "green"], epsilon=1.0)
        >>> bandit.add_arm("blue"), bandit.arms
        (2, ('red', 'green', 'blue'))
        >>> bandit.retire_arm("red")
        >>> bandit.decide().arm == "red"
        False
        """
        with self._lock:
            names = arm_names((*self.arms, name))
            self._change((*self.active, len(self.arms)), names)
            return len(names) - 1

    def retire_arm(self, arm: ArmName) -> None:
        """Retire an arm, by name or index, for good: no batch that begins from now on plays it.

        A batch that plays it and has begun goes on until it is full; to play the arm no more at
        once, decide among the others: ``decide(eligible=...)``.
        """
        with self._lock:
            index = arm_index(arm, self.arms)
            if index in self.retired:
                raise InputError(f"arm {arm!r} has been retired before.")
            if len(self.active) == 2:
                raise InputError(
                    f"arm {arm!r} is one of the last two; a bandit needs at least 2 arms. Add "
                    f"another one first."
                )
            self._change(tuple(other for other in self.active if other != index), self.arms)

    def _change(self, active: tuple[int, ...], names: tuple[ArmName, ...]) -> None:
        """Go on with other arms; nothing is changed where that is refused."""
        name = self.around or self.algorithm
        learner = self._player.with_arms(active, len(names), name)
        self.recipe = self.recipe._replace(learner=learner)
        self.retired = frozenset(range(len(names))) - frozenset(active)
        self.arms = names
        self.changed = True
