#!/usr/bin/env python3
"""One request of the user demo to the servers that lab.py has started; prints the JSON of the answer.

    ask.py METHOD SERVICE PATH [JSON]      such as: ask.py GET neutron /v2.0/security-groups
"""

import json
import sys

import lab


class Demo(lab.Api):
    """Requests of the user demo."""

    def __init__(self):
        domain = {"id": "default"}
        identity = {"methods": ["password"], "password": {"user": {"name": "demo", "password": lab.PASSWORD, "domain": domain}}}
        body = {"auth": {"identity": identity, "scope": {"project": {"name": "demo", "domain": domain}}}}
        headers = {"Content-Type": "application/json"}
        request = lab.urllib.request.Request(lab.url("keystone") + "/auth/tokens", json.dumps(body).encode(), headers)
        self.token = lab.open_url(request).headers["X-Subject-Token"]


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    method, service, path = sys.argv[1:4]
    body = json.loads(sys.argv[4]) if len(sys.argv) == 5 else None
    json.dump(Demo().ask(method, service, path, body), sys.stdout)


if __name__ == "__main__":
    main()
