"""What goes wrong."""

from __future__ import annotations


class KubewrightError(Exception):
    """The base of all errors of this package."""


class ProgramNotFound(KubewrightError):
    """There is no `kubewright` program."""


class StartError(KubewrightError):
    """The program ended, or was not ready in time; the message has what it wrote to standard error."""


class ApiError(KubewrightError):
    """The server refused a request to `/kubewright`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        #: The HTTP status.
        self.status = status
        #: The server's message.
        self.message = message
