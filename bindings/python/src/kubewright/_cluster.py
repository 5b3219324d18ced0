"""A control plane in a process of its own."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from kubewright import _program
from kubewright._api import Api
from kubewright._errors import StartError

#: How long the start may take, in seconds.
START_TIMEOUT = 60.0
#: How long the end may take before the process is killed, in seconds.
STOP_TIMEOUT = 10.0


class Cluster:
    """A Kubernetes control plane: started when it is made, ended by `stop`, by the end of `with`, and with this process, whatever
    ends that.

    Args:
        controllers: the built-in controllers that run: a list of names such as `"deployment"`, with `"*"` for all and `"-name"` for
            all but that one. By default all.
        nodes: how many simulated nodes there are. By default one.
        kubernetes_version: the version that is served, such as `"1.36"`. By default the newest.
        clock: what cluster time starts at and how fast it passes, such as `"2030-01-01T00:00:00Z,speed=0"`. By default the
            machine's.

    Raises:
        ProgramNotFound: when there is no program.
        StartError: when it ends, or is not ready in a minute.
    """

    def __init__(
        self,
        *,
        controllers: Iterable[str] | None = None,
        nodes: int | None = None,
        kubernetes_version: str | None = None,
        clock: str | None = None,
    ) -> None:
        if isinstance(controllers, str):
            raise TypeError("controllers is a list of names")
        self._folder = tempfile.TemporaryDirectory(prefix="kubewright-")
        self._kubeconfig = Path(self._folder.name) / "kubeconfig"
        words = [_program.find(), "up", "--port=0", "--admin", "--quiet", "--exit-with-stdin"]
        words.append(f"--kubeconfig={self._kubeconfig}")
        if controllers is not None:
            words.append(f"--controllers={','.join(controllers)}")
        if nodes is not None:
            words.append(f"--nodes={nodes}")
        if kubernetes_version is not None:
            words.append(f"--kubernetes-version={kubernetes_version}")
        if clock is not None:
            words.append(f"--clock={clock}")
        self._errors = Path(self._folder.name) / "stderr"
        with self._errors.open("wb") as errors:
            # The server ends when the other end of this pipe is closed, as it is when this process ends.
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
        try:
            self._await_kubeconfig()
            self._api = Api(self._kubeconfig)
        except BaseException:
            self.stop()
            raise

    def _await_kubeconfig(self) -> None:
        until = time.monotonic() + START_TIMEOUT
        # It appears whole.
        while not self._kubeconfig.exists():
            code = self._process.poll()
            said = self._errors.read_text(encoding="utf-8", errors="replace").strip()
            if code is not None:
                raise StartError(f"kubewright ended with {code}: {said or 'it said nothing'}")
            if time.monotonic() > until:
                raise StartError(f"kubewright is not ready after {START_TIMEOUT:.0f} s: {said or 'it said nothing'}")
            time.sleep(0.002)

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig of the administrator. It is there as long as the cluster."""
        return str(self._kubeconfig)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._api.server

    def reset(self) -> None:
        """Makes the cluster as it was when it started: objects, faults and the request log. Time does not go back."""
        self._api.request("POST", "/reset")

    def now(self) -> datetime:
        """Cluster time."""
        return _time(self._api.request("GET", "/clock"))

    def advance(self, by: str | timedelta) -> datetime:
        """Lets cluster time pass, `"1h30m"` or a `timedelta`, with all that falls due meanwhile; gives the time after it.

        Raises:
            ApiError: when the cluster has no clock of its own (`clock=`), or the duration is none.
        """
        if isinstance(by, timedelta):
            by = f"{by / timedelta(microseconds=1):.0f}us"
        return _time(self._api.request("POST", "/clock/advance", {"by": by}))

    def add_fault(self, rule: dict[str, Any]) -> int:
        """Makes requests or watches fail by a rule, such as `{"match": {"verbs": ["update"], "resource": "deployments"}, "fault":
        "conflict", "times": 2}`; gives the rule's id.

        Raises:
            ApiError: when the rule is none.
        """
        return int(self._api.request("POST", "/faults", rule)["id"])

    def faults(self) -> list[dict[str, Any]]:
        """The rules, each with its `id` and how often it has struck (`hits`)."""
        return list(self._api.request("GET", "/faults")["faults"])

    def remove_fault(self, rule: int) -> None:
        """Removes a rule.

        Raises:
            ApiError: when there is none of this id.
        """
        self._api.request("DELETE", f"/faults/{rule}")

    def clear_faults(self) -> None:
        """Removes all rules."""
        self._api.request("DELETE", "/faults")

    def requests(self, **filters: str | int) -> dict[str, Any]:
        """The request log: `counts` by user agent, verb and resource, and the last requests in full. Filters are those of a fault's
        `match`, and `limit`: `requests(verbs="update,patch", resource="deployments", userAgent="manager", limit=10)`.

        Raises:
            ApiError: when a filter is none.
        """
        answer = self._api.request("GET", "/requests", query={key: str(value) for key, value in filters.items()})
        return dict(answer)

    def clear_requests(self) -> None:
        """Empties the request log."""
        self._api.request("DELETE", "/requests")

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the cluster, and waits for it. A second call does nothing."""
        if hasattr(self, "_api"):
            self._api.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"at {self.server}" if self.is_running else "stopped"
        return f"<kubewright.Cluster {state}>"


def _time(answer: Any) -> datetime:
    text: str = answer["now"]
    # Python takes microseconds at most, and `Z` since 3.11.
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{fraction[:6].ljust(6, '0')}+00:00")

