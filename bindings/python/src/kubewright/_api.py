"""Requests to the paths below `/kubewright`, as the administrator of a kubeconfig."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from kubewright._errors import ApiError

#: How long an answer may take, in seconds: a day of cluster time with all controllers takes some.
TIMEOUT = 300.0


class Api:
    """A connection to a server that `kubewright up` started. Threads may share it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")
        self.server: str = cluster["server"]
        self._token: str = user["token"]
        self._context = ssl.create_default_context(cadata=authority)
        self._connection: http.client.HTTPSConnection | None = None
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Any:
        """The JSON that the server answers with; `None` where it answers nothing.

        Raises:
            ApiError: when it refuses.
        """
        target = f"/kubewright{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        with self._lock:
            try:
                status, text = self._send(method, target, sent, headers)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server closed what was idle; it has seen nothing of this.
                self._connection = None
                status, text = self._send(method, target, sent, headers)
        answer = _read(text)
        if status >= 400:
            message = answer.get("message") if isinstance(answer, dict) else None
            raise ApiError(status, message or text.strip())
        return answer

    def _send(self, method: str, target: str, body: str | None, headers: dict[str, str]) -> tuple[int, str]:
        if self._connection is None:
            host = urlsplit(self.server).netloc
            self._connection = http.client.HTTPSConnection(host, timeout=TIMEOUT, context=self._context)
        try:
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
            return response.status, response.read().decode("utf-8")
        except BaseException:
            # Half an answer is of no use to the next request.
            self._connection.close()
            self._connection = None
            raise

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _read(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except json.JSONDecodeError:
        return None
