"""score, study and verify of a launch file, or of a Launch that was bound to arrays."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Union

from .emulator import Launch, Score


def _launch_of(launch: Union[str, Launch], size: str) -> Launch:
    return launch if isinstance(launch, Launch) else Launch.from_file(launch, size=size)


def score(launch: Union[str, Launch], gpu: str = "h200", *, size: str = "", **options: Any) -> Score:
    """See Launch.score."""
    return _launch_of(launch, size).score(gpu, **options)


def study(launch: Union[str, Launch], gpu: str = "titanv", *, size: str = "", **options: Any) -> Dict[str, Any]:
    """See Launch.study."""
    return _launch_of(launch, size).study(gpu, **options)


def verify(launch: Union[str, Launch], passes: Union[str, Sequence[str]], *, size: str = "",
           **options: Any) -> List[Dict[str, Any]]:
    """See Launch.verify."""
    return _launch_of(launch, size).verify(passes, **options)
