from __future__ import annotations

import kubernetes
import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def core(cluster) -> kubernetes.client.CoreV1Api:
    return kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(cluster.kubeconfig))
