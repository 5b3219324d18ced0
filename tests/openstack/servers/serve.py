"""python -m servers.serve SERVICE HOST PORT: serves one of OpenStack's APIs.

Nova's API, conductor, scheduler and compute are one process, so that oslo.messaging's in-memory transport reaches all.
"""

import os
import signal
import sys
import threading
import traceback

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "SAVEPOINT")


def share_sqlite():
    """Lets threads share an SQLite file: a transaction takes the lock of writers with its first write, and waits for it.

    A plain BEGIN would fail in the middle ("database is locked") when another one has committed since. A lock that does not
    come is told as a deadlock, which OpenStack tries again.
    """
    import sqlite3

    from oslo_db import exception
    from oslo_db.sqlalchemy import exc_filters
    from sqlalchemy import event, exc
    from sqlalchemy.engine import Engine

    def raw(connection):
        connection = getattr(connection, "driver_connection", connection)
        return connection if isinstance(connection, sqlite3.Connection) else None

    @event.listens_for(Engine, "connect")
    def on_connect(connection, _record):
        if raw(connection) is not None:
            for setting in ("journal_mode=WAL", "synchronous=OFF", "busy_timeout=20000"):
                raw(connection).execute(f"PRAGMA {setting}")

    @event.listens_for(Engine, "before_cursor_execute", retval=True)
    def on_execute(conn, _cursor, statement, parameters, _context, _many):
        if conn.dialect.name == "sqlite":
            connection = raw(conn.connection)
            if statement == "BEGIN":
                statement = "-- put off until the first write"
            elif connection is not None and not connection.in_transaction \
                    and statement.lstrip()[:9].upper().startswith(WRITES):
                connection.execute("BEGIN IMMEDIATE")
        return statement, parameters

    @exc_filters.filters("sqlite", exc.OperationalError, r".*database (table )?is locked.*")
    def on_locked(error, _match, _engine, _disconnect):
        raise exception.DBDeadlock(error)


def nova():
    # This import reads the configuration and sets up logs, database and messaging; it has to be the first.
    from nova.wsgi.osapi_compute import application

    import shlex

    import nova.virt.node
    import os_brick
    import os_vif
    from nova import context, service, utils
    from nova.compute import rpcapi as compute
    from nova.conductor import rpcapi as conductor
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler
    from nova.virt import fake
    from oslo_config import cfg
    from oslo_privsep import priv_context

    class LabDriver(fake.FakeDriver):
        """Nova's driver for tests, whose node keeps its UUID when the process starts anew."""

        def get_available_resource(self, nodename):
            status = super().get_available_resource(nodename)
            if status:
                status["uuid"] = nova.virt.node.get_local_node_uuid()
            return status

        def get_nodenames_by_uuid(self, refresh=False):
            return {nova.virt.node.get_local_node_uuid(): self._host}

    fake.LabDriver = LabDriver

    def start(binary, topic):
        one = service.Service.create(binary=binary, topic=topic)
        one.start()
        # It counts as alive from now on, not from its first report.
        one.service_ref.report_count += 1
        one.service_ref.save()
        return one

    running = [start("nova-conductor", conductor.RPC_TOPIC), start("nova-scheduler", scheduler.RPC_TOPIC)]
    priv_context.init(root_helper=shlex.split(utils.get_root_helper()))
    os_brick.setup(cfg.CONF)
    os_vif.initialize()
    running.append(start("nova-compute", compute.RPC_TOPIC))
    host_mapping.discover_hosts(context.get_admin_context())
    application.kept = running
    return application


def main():
    name, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.argv = [name]  # the services read it too
    share_sqlite()
    try:
        if name == "nova":
            application = nova()
        else:
            module = {"keystone": "keystone.wsgi.api", "placement": "placement.wsgi.api",
                      "glance": "glance.wsgi.api", "neutron": "neutron.wsgi.api"}[name]
            application = __import__(module, fromlist=["application"]).application
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # threads of what has half started would keep the process

    import waitress

    server = waitress.create_server(application, host=host, port=port, threads=8, ident=None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    print(f"{name} on {host}:{port}, {threading.active_count()} threads", flush=True)
    server.run()


if __name__ == "__main__":
    main()
