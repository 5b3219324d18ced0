"""Fixtures of pytest: `cluster`, reset before each test, and `cluster_factory`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubewright._cluster import Cluster

OPTIONS = {
    "controllers": "the built-in controllers of the session's cluster, with commas between them (default: all)",
    "nodes": "how many simulated nodes the session's cluster has (default: 1)",
    "kubernetes_version": "the version of Kubernetes that clusters serve (default: the newest)",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--kubewright-controllers` and the like, and the same for ini files."""
    group = parser.getgroup("kubewright", "Kubernetes control planes")
    for name, text in OPTIONS.items():
        flag = f"--kubewright-{name.replace('_', '-')}"
        group.addoption(flag, dest=f"kubewright_{name}", default=None, help=text)
        parser.addini(f"kubewright_{name}", text, default=None)


def _options(config: pytest.Config) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name in OPTIONS:
        value = config.getoption(f"kubewright_{name}")
        value = config.getini(f"kubewright_{name}") if value is None else value
        if value not in (None, ""):
            options[name] = value
    if "controllers" in options:
        options["controllers"] = [name for name in options["controllers"].replace(",", " ").split() if name]
    if "nodes" in options:
        try:
            options["nodes"] = int(options["nodes"])
        except ValueError:
            raise pytest.UsageError(f"kubewright_nodes is a number (was {options['nodes']!r})") from None
    return options


@pytest.fixture(scope="session")
def kubewright_session_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster of this session; with pytest-xdist each worker has one. Tests take `cluster`, which is reset."""
    with Cluster(**_options(pytestconfig)) as cluster:
        yield cluster


@pytest.fixture
def cluster(kubewright_session_cluster: Cluster) -> Cluster:
    """The session's cluster, as it was when it started: nothing of the tests before is in it."""
    kubewright_session_cluster.reset()
    return kubewright_session_cluster


@pytest.fixture
def cluster_factory(pytestconfig: pytest.Config) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters with options of their own, such as `cluster_factory(clock="2030-01-01T00:00:00Z,speed=0")`; they are stopped when
    the test ends. What is not said is as in the ini file."""
    made: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        one = Cluster(**{**_options(pytestconfig), **options})
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()
