"""What a cluster promises to the tests of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from datetime import datetime, timedelta, timezone

import kubernetes
import pytest

import kubewright

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


def client_of(cluster: kubewright.Cluster) -> kubernetes.client.ApiClient:
    return kubernetes.config.new_client_from_config(cluster.kubeconfig)


def eventually(what, timeout: float = 30.0):
    """What `what` gives when it gives something."""
    until = time.monotonic() + timeout
    while not (found := what()):
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.01)
    return found


def test_an_object_is_created_read_changed_and_deleted(core):
    core.create_namespaced_config_map("default", {"metadata": {"name": "a"}, "data": {"key": "1"}})
    core.patch_namespaced_config_map("a", "default", {"data": {"key": "2"}})
    assert core.read_namespaced_config_map("a", "default").data == {"key": "2"}
    core.delete_namespaced_config_map("a", "default")
    with pytest.raises(kubernetes.client.ApiException, match="Not Found"):
        core.read_namespaced_config_map("a", "default")


def test_a_deployment_gets_pods(cluster, core):
    kubernetes.client.AppsV1Api(client_of(cluster)).create_namespaced_deployment("default", DEPLOYMENT)

    def running():
        pods = core.list_namespaced_pod("default").items
        return len(pods) == 2 and all(pod.status.phase == "Running" for pod in pods)

    eventually(running)


@pytest.mark.parametrize("turn", [1, 2])
def test_a_reset_removes_what_the_test_before_made(core, turn):
    names = [one.metadata.name for one in core.list_namespaced_config_map("default").items]
    assert "left" not in names
    core.create_namespaced_config_map("default", {"metadata": {"name": "left"}})


def test_a_day_has_twenty_four_hourly_runs(cluster_factory):
    cluster = cluster_factory(clock="2030-01-01T00:00:00Z,speed=0")
    assert cluster.now() == datetime(2030, 1, 1, tzinfo=timezone.utc)
    spec = {
        "schedule": "0 * * * *",
        "successfulJobsHistoryLimit": 100,
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}],
        }}}},
    }
    batch = kubernetes.client.BatchV1Api(client_of(cluster))
    batch.create_namespaced_cron_job("default", {"metadata": {"name": "hourly"}, "spec": spec})
    # The controller looks a tenth of a second after a run is due, as Kubernetes' own does.
    assert cluster.advance(timedelta(hours=24, seconds=1)) == datetime(2030, 1, 2, 0, 0, 1, tzinfo=timezone.utc)
    assert len(batch.list_namespaced_job("default").items) == 24
    assert cluster.advance("90m") == datetime(2030, 1, 2, 1, 30, 1, tzinfo=timezone.utc)


def test_the_machines_clock_is_not_advanced(cluster):
    with pytest.raises(kubewright.ApiError, match="clock"):
        cluster.advance("1h")


def test_a_fault_strikes_as_often_as_it_says(cluster, core):
    core.create_namespaced_config_map("default", {"metadata": {"name": "a"}})
    rule = {"match": {"verbs": ["update"], "resource": "configmaps"}, "fault": "conflict", "times": 1}
    added = cluster.add_fault(rule)
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.replace_namespaced_config_map("a", "default", {"metadata": {"name": "a"}})
    assert refused.value.status == 409
    core.replace_namespaced_config_map("a", "default", {"metadata": {"name": "a"}})
    assert [(one["id"], one["hits"]) for one in cluster.faults()] == [(added, 1)]
    cluster.remove_fault(added)
    assert cluster.faults() == []
    with pytest.raises(kubewright.ApiError, match="404"):
        cluster.remove_fault(added)
    with pytest.raises(kubewright.ApiError, match="400"):
        cluster.add_fault({"fault": "nonsense"})
    cluster.add_fault(rule)
    cluster.clear_faults()
    assert cluster.faults() == []


def test_the_log_says_who_called_what(cluster, core):
    cluster.clear_requests()
    core.list_namespaced_secret("default")
    log = cluster.requests(verbs="list", resource="secrets")
    assert sum(count["count"] for count in log["counts"]) == 1
    cluster.clear_requests()
    assert cluster.requests(resource="secrets")["counts"] == []


def test_clusters_are_apart(cluster, core, cluster_factory):
    other = cluster_factory(nodes=3, kubernetes_version="1.35")
    assert other.server != cluster.server
    core.create_namespaced_config_map("default", {"metadata": {"name": "here"}})
    theirs = kubernetes.client.CoreV1Api(client_of(other))
    eventually(lambda: len(theirs.list_node().items) == 3)
    assert "here" not in [one.metadata.name for one in theirs.list_namespaced_config_map("default").items]
    assert kubernetes.client.VersionApi(client_of(other)).get_code().minor == "35"


def test_what_was_stopped_is_gone_and_can_be_stopped_again():
    cluster = kubewright.Cluster(controllers=[], nodes=0)
    kubeconfig = cluster.kubeconfig
    cluster.stop()
    cluster.stop()
    assert not cluster.is_running and not os.path.exists(kubeconfig)


def test_a_program_that_does_not_start_says_why():
    with pytest.raises(kubewright.StartError, match='there is no controller "deploymnt"'):
        kubewright.Cluster(controllers=["deploymnt"])
    with pytest.raises(TypeError, match="a list of names"):
        kubewright.Cluster(controllers="deployment")


def test_a_program_that_is_nowhere_is_told_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KUBEWRIGHT", str(tmp_path / "kubewright"))
    with pytest.raises(kubewright.ProgramNotFound, match="the variable KUBEWRIGHT names"):
        kubewright.Cluster()
    monkeypatch.delenv("KUBEWRIGHT")
    with pytest.raises(kubewright.ProgramNotFound, match="KUBEWRIGHT.*wheel.*PATH"):
        kubewright.Cluster()


def test_a_process_that_is_killed_leaves_no_cluster():
    script = """
        import kubewright, time
        cluster = kubewright.Cluster(controllers=[], nodes=0)
        print(cluster._process.pid, flush=True)
        time.sleep(600)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    server = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    def is_gone():
        try:
            with open(f"/proc/{server}/stat") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    eventually(is_gone)
