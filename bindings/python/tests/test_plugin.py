"""The fixtures in a project of somebody else."""

from __future__ import annotations


def test_options_come_from_the_ini_file_and_from_the_command_line(pytester):
    pytester.makeini("[pytest]\nkubewright_nodes = 2\nkubewright_kubernetes_version = 1.36\n")
    pytester.makepyfile(
        """
        import time
        import kubernetes

        def test_nodes(cluster, pytestconfig):
            client = kubernetes.config.new_client_from_config(cluster.kubeconfig)
            assert kubernetes.client.VersionApi(client).get_code().minor == "36"
            wanted = int(pytestconfig.getoption("kubewright_nodes") or 2)
            core, until = kubernetes.client.CoreV1Api(client), time.monotonic() + 30
            while len(core.list_node().items) != wanted:
                assert time.monotonic() < until
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    pytester.runpytest_subprocess("--kubewright-nodes", "3").assert_outcomes(passed=1)
    refused = pytester.runpytest_subprocess("--kubewright-nodes", "many")
    refused.stdout.fnmatch_lines(["*kubewright_nodes is a number (was 'many')*"])


def test_each_worker_has_a_cluster(pytester):
    pytester.makepyfile(
        """
        import kubernetes, pytest

        @pytest.mark.parametrize("turn", range(8))
        def test_alone(cluster, turn):
            core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(cluster.kubeconfig))
            core.create_namespaced_config_map("default", {"metadata": {"name": "same"}})
        """
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=8)
