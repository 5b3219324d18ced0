#!/usr/bin/env python3
"""OpenStack's own API servers on loopback, on SQLite, for the tests of operators/security-group.

    lab.py setup FOLDER      installs them from PyPI and makes their databases (about a minute, once)
    lab.py up FOLDER         starts them from the seeded state, and prints Keystone's URL
    lab.py down FOLDER       stops what `up` has started, and nothing else

Keystone, Neutron and Nova, and the Placement and Glance that Nova needs. There are the projects admin, demo and other with
users of the same names (password: secret), the flavor tiny, the image blank and the network shared. LAB_PORT is the first
of five ports (25100), on which they listen in this order: Keystone, Placement, Glance, Neutron, Nova.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
UV = "0.13.8"
HOST, PASSWORD, REGION = "127.0.0.1", "secret", "RegionOne"
BASE = int(os.environ.get("LAB_PORT", "25100"))
# name: kind in the catalog, path behind the port
SERVICES = {"keystone": ("identity", "/v3"), "placement": ("placement", ""), "glance": ("image", ""),
            "neutron": ("network", ""), "nova": ("compute", "/v2.1")}


def port(name):
    return BASE + list(SERVICES).index(name)


def url(name):
    return f"http://{HOST}:{port(name)}{SERVICES[name][1]}"


class Lab:
    """What is in a folder: `venv`, the seeded state in `seeded`, and the running one in `run`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.venv = self.folder / "venv"
        self.python = self.venv / "bin/python"
        self.run = self.folder / "run"
        self.etc, self.state = self.run / "etc", self.run / "state"

    # ------------------------------------------------------------ setup

    def setup(self):
        sources = [HERE / "requirements.txt", HERE / "lab.py", *sorted((HERE / "servers").glob("*.py"))]
        wanted = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        done = self.folder / "done"
        if done.exists() and done.read_text() == wanted:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        self.install()
        self.seed()
        done.write_text(wanted)

    def install(self):
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        pip = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"uv=={UV}"], check=True)
        uv = [self.python, "-m", "uv", "pip", "install", "-q", "--python", self.python, "--no-deps"]
        subprocess.run([*uv, "-r", HERE / "requirements.txt"], check=True)
        site = next((self.venv / "lib").glob("python*/site-packages"))
        shutil.rmtree(site / "servers", ignore_errors=True)
        shutil.copytree(HERE / "servers", site / "servers", ignore=shutil.ignore_patterns("__pycache__"))
        # What Neutron finds the driver by.
        info = site / "kubewright_lab-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kubewright-lab\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[neutron.ml2.mechanism_drivers]\nlab = servers.driver:Driver\n")

    def seed(self):
        self.stop()
        shutil.rmtree(self.run, ignore_errors=True)
        self.configure()
        try:
            self.make_databases()
            self.start(["keystone"])
            api = Api()
            self.seed_identity(api)
            self.start(list(SERVICES))
            self.seed_cloud(Api())
        finally:
            self.stop()
        seeded = self.folder / "seeded"
        shutil.rmtree(seeded, ignore_errors=True)
        for file in (self.run / "db").glob("*.sqlite"):
            with sqlite3.connect(file) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.close()
        shutil.move(self.run, seeded)

    def tool(self, name, *command):
        with open(self.run / "log" / f"{name}-manage.log", "a") as log:
            done = subprocess.run([self.venv / "bin" / command[0], *command[1:]], env=self.environment(name), stdout=log, stderr=log)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))} failed: see {log.name}")

    def make_databases(self):
        keystone = ("keystone-manage", "--config-file", f"{self.etc}/keystone/keystone.conf")
        nova = ("nova-manage", "--config-file", f"{self.etc}/nova/nova.conf")

        def of_keystone():
            self.tool("keystone", *keystone, "db_sync")
            user = os.environ.get("USER") or "root"
            who = ("--keystone-user", user, "--keystone-group", user) if os.geteuid() == 0 else ()
            for kind in ("fernet", "credential"):
                (self.etc / "keystone" / kind).mkdir(mode=0o700, exist_ok=True)
                self.tool("keystone", *keystone, f"{kind}_setup", *who)
            urls = [part for face in ("public", "internal", "admin") for part in (f"--bootstrap-{face}-url", url("keystone"))]
            self.tool("keystone", *keystone, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION, *urls)

        def of_nova():
            self.tool("nova", *nova, "db", "sync", "--local_cell")
            shutil.copy(self.run / "db/nova.sqlite", self.run / "db/nova_cell0.sqlite")
            self.tool("nova", *nova, "api_db", "sync")
            self.tool("nova", *nova, "cell_v2", "map_cell0", "--database_connection", self.database("nova_cell0"))
            self.tool("nova", *nova, "cell_v2", "create_cell", "--name", "cell1", "--database_connection",
                      self.database("nova"), "--transport-url", "fake:/")

        def of_others():
            self.tool("glance", "glance-manage", "--config-file", f"{self.etc}/glance/glance-api.conf", "db_sync")
            self.tool("placement", "placement-manage", "--config-file", f"{self.etc}/placement/placement.conf", "db", "sync")
            self.tool("neutron", "python", __file__, "neutron-schema", self.database("neutron"))

        with concurrent.futures.ThreadPoolExecutor() as pool:
            for job in [pool.submit(one) for one in (of_keystone, of_nova, of_others)]:
                job.result()

    def seed_identity(self, api):
        roles = {role["name"]: role["id"] for role in api.get("keystone", "/roles")["roles"]}
        for name in {"service", "member"} - set(roles):
            roles[name] = api.post("keystone", "/roles", "role", name=name)["id"]
        projects = {name: api.post("keystone", "/projects", "project", name=name, domain_id="default")["id"]
                    for name in ("service", "demo", "other")}

        def user(name, project, *wanted):
            made = api.post("keystone", "/users", "user", name=name, password=PASSWORD, domain_id="default")["id"]
            for role in wanted:
                api.ask("PUT", "keystone", f"/projects/{projects[project]}/users/{made}/roles/{roles[role]}")

        for name, (kind, _path) in SERVICES.items():
            if name != "keystone":
                user(name, "service", "admin", "service")
                service = api.post("keystone", "/services", "service", name=name, type=kind)["id"]
                for face in ("public", "internal", "admin"):
                    api.post("keystone", "/endpoints", "endpoint", service_id=service, interface=face, region_id=REGION, url=url(name))
        for name in ("demo", "other"):
            user(name, name, "member")

    def seed_cloud(self, api):
        api.post("nova", "/flavors", "flavor", name="tiny", ram=64, vcpus=1, disk=1)
        image = api.ask("POST", "glance", "/v2/images", dict(name="blank", disk_format="raw", container_format="bare", visibility="public"))
        api.ask("PUT", "glance", f"/v2/images/{image['id']}/file", b"\0" * 512)
        network = api.post("neutron", "/v2.0/networks", "network", name="shared", shared=True)
        api.post("neutron", "/v2.0/subnets", "subnet", network_id=network["id"], ip_version=4, cidr="10.64.0.0/16", enable_dhcp=False)

    # ------------------------------------------------------------ settings

    def database(self, name):
        return f"sqlite:///{self.run}/db/{name}.sqlite?timeout=60"

    def write(self, file, sections):
        path = self.etc / file
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for section, options in sections.items():
            lines += [f"[{section}]", *(f"{name} = {value}" for name, value in options.items()), ""]
        path.write_text("\n".join(lines))
        path.chmod(0o600)

    def configure(self):
        state, etc = self.state, self.etc
        for folder in ("db", "log", "pids", "state/nova/instances", "state/neutron", "state/locks", "state/glance/images",
                       "state/glance/staging", "state/glance/tasks", "state/glance/cache"):
            (self.run / folder).mkdir(parents=True, exist_ok=True)
        locks, quiet = {"lock_path": state / "locks"}, {"driver": "noop"}

        def login(user):
            return {"auth_type": "password", "auth_url": url("keystone"), "username": user, "password": PASSWORD, "project_name": "service",
                    "user_domain_id": "default", "project_domain_id": "default", "region_name": REGION}

        def tokens(user):
            return dict(login(user), www_authenticate_uri=url("keystone"), service_token_roles="service", service_token_roles_required="true")

        self.write("keystone/keystone.conf", {
            "database": {"connection": self.database("keystone")},
            "token": {"provider": "fernet"},
            "fernet_tokens": {"key_repository": etc / "keystone/fernet"},
            "credential": {"key_repository": etc / "keystone/credential"},
            "identity": {"password_hash_rounds": 4},
            "cache": {"enabled": "true", "backend": "oslo_cache.dict"},
            "oslo_messaging_notifications": quiet,
        })
        self.write("placement/placement.conf", {
            "placement_database": {"connection": self.database("placement")},
            "api": {"auth_strategy": "keystone"},
            "keystone_authtoken": tokens("placement"),
        })
        glance = state / "glance"
        self.write("glance/glance-api.conf", {
            "DEFAULT": {"enabled_backends": "file:file", "image_cache_dir": glance / "cache"},
            "database": {"connection": self.database("glance")},
            "glance_store": {"default_backend": "file"},
            "file": {"filesystem_store_datadir": glance / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": glance / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": glance / "tasks"},
            "paste_deploy": {"flavor": "keystone", "config_file": etc / "glance/glance-api-paste.ini"},
            "keystone_authtoken": tokens("glance"),
            "oslo_concurrency": locks,
            "oslo_messaging_notifications": quiet,
        })
        self.write("neutron/neutron.conf", {
            "DEFAULT": {"core_plugin": "ml2", "service_plugins": "", "auth_strategy": "keystone", "api_paste_config": etc / "neutron/api-paste.ini",
                        "state_path": state / "neutron", "transport_url": "fake:/", "host": "lab", "dhcp_agent_notification": "false",
                        "notify_nova_on_port_status_changes": "false", "notify_nova_on_port_data_changes": "false"},
            "database": {"connection": self.database("neutron")},
            "keystone_authtoken": tokens("neutron"),
            "oslo_concurrency": locks,
            "oslo_messaging_notifications": quiet,
            "ml2": {"type_drivers": "local,vxlan", "tenant_network_types": "vxlan", "mechanism_drivers": "lab",
                    "extension_drivers": "port_security"},
            "ml2_type_vxlan": {"vni_ranges": "1:1000"},
        })
        self.write("nova/nova.conf", {
            "DEFAULT": {"compute_driver": "fake.LabDriver", "transport_url": "fake:/", "host": "lab", "my_ip": HOST,
                        "state_path": state / "nova", "instances_path": state / "nova/instances", "vif_plugging_is_fatal": "false",
                        "vif_plugging_timeout": 0, "periodic_fuzzy_delay": 0, "rpc_response_timeout": 60},
            "api": {"auth_strategy": "keystone"},
            "api_database": {"connection": self.database("nova_api")},
            "database": {"connection": self.database("nova")},
            "keystone_authtoken": tokens("nova"),
            "service_user": dict(login("nova"), send_service_user_token="true"),
            "neutron": login("nova"), "placement": login("nova"), "glance": login("nova"), "cinder": login("nova"),
            "quota": {"instances": 1000, "cores": 4000, "ram": 4000000},
            "oslo_concurrency": locks,
            "oslo_messaging_notifications": quiet,
            "vnc": {"enabled": "false"},
            "wsgi": {"api_paste_config": etc / "nova/api-paste.ini"},
        })
        for name, file in (("glance", "glance-api-paste.ini"), ("neutron", "api-paste.ini"), ("nova", "api-paste.ini")):
            shutil.copy(self.venv / "etc" / name / file, etc / name)

    def environment(self, name):
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith("OS_") and key.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
        folder = {"OS_" + name.upper() + "_CONFIG_DIR": str(self.etc / name)}
        files = {"OS_NEUTRON_CONFIG_FILES": "neutron.conf"} if name == "neutron" else {}
        return dict(kept, PATH=f"{self.venv}/bin:{kept.get('PATH', '')}", PYTHONUNBUFFERED="1", PYTHONWARNINGS="ignore",
                    MALLOC_ARENA_MAX="2", NO_PROXY="*", **folder, **files)

    # ------------------------------------------------------------ processes

    def up(self):
        seeded = self.folder / "seeded"
        if not (self.folder / "done").exists():
            sys.exit("there is nothing to start: lab.py setup first")
        self.stop()
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(seeded, self.run, ignore=shutil.ignore_patterns("log", "pids"))
        self.configure()
        self.relocate()
        self.start(list(SERVICES))
        print(f"http://{HOST}:{port('keystone')}")

    def relocate(self):
        """Says where things are by now: the databases were made with other ports, in another folder."""
        with sqlite3.connect(self.run / "db/keystone.sqlite") as keystone:
            for name, (kind, _path) in SERVICES.items():
                keystone.execute("UPDATE endpoint SET url=? WHERE service_id=(SELECT id FROM service WHERE type=?)", (url(name), kind))
        keystone.close()
        with sqlite3.connect(self.run / "db/nova_api.sqlite") as nova:
            for cell, name in (("cell0", "nova_cell0"), ("cell1", "nova")):
                nova.execute("UPDATE cell_mappings SET database_connection=? WHERE name=?", (self.database(name), cell))
        nova.close()

    def recorded(self, name):
        """The process that was started, if it is still that one."""
        try:
            pid, began = (self.run / "pids" / name).read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if began == beginning(int(pid)) else None

    def start(self, names):
        for name in names:
            if self.recorded(name):
                continue
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, port(name)))
                except OSError as error:
                    sys.exit(f"{name}: port {port(name)} is taken ({error}): set LAB_PORT")
            with open(self.run / "log" / f"{name}.log", "a") as log:
                process = subprocess.Popen([self.python, "-m", "servers.serve", name, HOST, str(port(name))], env=self.environment(name),
                                           cwd=self.run, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            (self.run / "pids" / name).write_text(f"{process.pid} {beginning(process.pid)}")
        end = time.monotonic() + 120
        while waited := [name for name in names if not answers(name)]:
            for name in waited:
                if not self.recorded(name) or time.monotonic() > end:
                    log = self.run / "log" / f"{name}.log"
                    tail = log.read_text()[-3000:]
                    self.stop()
                    sys.exit(f"{tail}\n{name} did not start: {log}")
            time.sleep(0.2)

    def stop(self):
        for wanted in (signal.SIGTERM, signal.SIGKILL):
            left = [pid for pid in map(self.recorded, SERVICES) if pid]
            for pid in left:
                os.kill(pid, wanted)
            end = time.monotonic() + 10
            while any(map(self.recorded, SERVICES)) and time.monotonic() < end:
                for pid in left:
                    try:
                        os.waitpid(pid, os.WNOHANG)
                    except ChildProcessError:
                        pass
                time.sleep(0.05)


def beginning(pid):
    """When a process began, which tells it from a later one of the same number."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def open_url(request, timeout=60):
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout)


def answers(name):
    try:
        return open_url(f"http://{HOST}:{port(name)}/", 5).status < 400
    except urllib.error.HTTPError as error:
        return error.code in (300, 401)
    except OSError:
        return False


class Api:
    """The administrator's requests."""

    def __init__(self):
        identity = {"methods": ["password"], "password": {"user": {"name": "admin", "password": PASSWORD, "domain": {"id": "default"}}}}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
        request = urllib.request.Request(url("keystone") + "/auth/tokens", body, {"Content-Type": "application/json"})
        self.token = open_url(request).headers["X-Subject-Token"]

    def ask(self, method, service, path, body=None):
        is_file = isinstance(body, bytes)
        headers = {"X-Auth-Token": self.token, "Content-Type": "application/octet-stream" if is_file else "application/json"}
        data = body if is_file or body is None else json.dumps(body).encode()
        answer = open_url(urllib.request.Request(url(service) + path, data, headers, method=method)).read()
        return json.loads(answer) if answer else None

    def get(self, service, path):
        return self.ask("GET", service, path)

    def post(self, service, path, kind, **fields):
        return self.ask("POST", service, path, {kind: fields})[kind]


def neutron_schema(connection):
    """Neutron's migrations need another database than SQLite. As in its unit tests its models make the tables; the rules of
    new groups, which a migration inserts, are taken from that migration."""
    import importlib.util

    import neutron
    import sqlalchemy
    from neutron.db.migration.models import head  # noqa: F401
    from neutron_lib.db import model_base

    engine = sqlalchemy.create_engine(connection)
    model_base.BASEV2.metadata.create_all(engine)
    versions = pathlib.Path(neutron.__file__).parent / "db/migration/alembic_migrations/versions"
    spec = importlib.util.spec_from_file_location("rules", versions / "2023.2/expand/c33da356b165_security_group_default_rules.py")
    migration = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(migration)
    tables = model_base.BASEV2.metadata.tables
    with engine.begin() as database:
        for rule in map(dict, migration.default_template_rules):
            attributes = tables["standardattributes"].insert().values(resource_type=migration.table_name, description=rule.pop("description"))
            key = database.execute(attributes).inserted_primary_key[0]
            database.execute(tables[migration.table_name].insert().values(standard_attr_id=key, **rule))


def main():
    command, folder = (sys.argv[1:] + ["", ""])[:2]
    if command == "neutron-schema":
        return neutron_schema(folder)
    if command not in ("setup", "up", "down") or not folder:
        sys.exit(__doc__)
    if sys.version_info < (3, 11):
        sys.exit("Python 3.11 or later is needed")
    lab = Lab(folder)
    {"setup": lab.setup, "up": lab.up, "down": lab.stop}[command]()


if __name__ == "__main__":
    main()
