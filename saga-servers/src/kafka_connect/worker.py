"""Runs a worker of Kafka Connect in standalone mode, with the connectors in `connectors.json`, until it is killed.

It does what Kafka's own program `connect-standalone` does, but for the REST interface: the package has the libraries that this
needs in versions that do not fit each other.

Arguments: the library of the Java virtual machine, and the libraries of Kafka Connect and of the connector.
"""

import json
import os
import pathlib
import sys
import threading
import time
import traceback

import jpype

CONNECT = "org.apache.kafka.connect."
LOOK_EVERY_SECONDS = 0.02


def java_map(values):
    result = jpype.JClass("java.util.HashMap")()
    for name, value in values.items():
        result.put(name, value)
    return result


def start_herder(settings):
    """The worker, and the herder that gives it its connectors, as `ConnectStandalone` makes them."""
    plugins = jpype.JClass(CONNECT + "runtime.isolation.Plugins")(settings)
    plugins.compareAndSwapWithDelegatingLoader()
    config = jpype.JClass(CONNECT + "runtime.standalone.StandaloneConfig")(settings)
    without_schemas = java_map({"schemas.enable": "false"})
    converter = plugins.newInternalConverter(True, CONNECT + "json.JsonConverter", without_schemas)
    offsets = jpype.JClass(CONNECT + "storage.FileOffsetBackingStore")(converter)
    offsets.configure(config)
    policy = jpype.JClass(CONNECT + "connector.policy.AllConnectorClientConfigOverridePolicy")()
    clock = jpype.JClass("org.apache.kafka.common.utils.Time").SYSTEM
    worker = jpype.JClass(CONNECT + "runtime.Worker")("connect", clock, plugins, config, offsets, policy)
    herder = jpype.JClass(CONNECT + "runtime.standalone.StandaloneHerder")(worker, config.kafkaClusterId(), policy)
    herder.start()
    return herder


def start_connector(herder, connector):
    """Starts a connector, and waits until it and all its tasks run."""
    name, config = connector["name"], java_map({"name": connector["name"], **connector["config"]})
    done = jpype.JClass(CONNECT + "util.FutureCallback")()
    herder.putConnectorConfig(name, config, False, done)
    done.get()
    while True:
        status = herder.connectorStatus(name)
        parts = [status.connector(), *status.tasks()]
        failed = [part for part in parts if str(part.state()) == "FAILED"]
        if failed:
            raise RuntimeError(f"the connector {name} failed: {failed[0].trace()}")
        if len(parts) > 1 and all(str(part.state()) == "RUNNING" for part in parts):
            return
        time.sleep(LOOK_EVERY_SECONDS)


def main():
    machine, *libraries = sys.argv[1:]
    # It lives for a minute: what makes it start soon is worth more than what makes it fast.
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=log4j2.properties"]
    jpype.startJVM(machine, *options, classpath=libraries)
    lines = pathlib.Path("worker.properties").read_text().splitlines()
    herder = start_herder(java_map(dict(line.split("=", 1) for line in lines)))
    for connector in json.loads(pathlib.Path("connectors.json").read_text()):
        start_connector(herder, connector)
    pathlib.Path("ready").touch()
    threading.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # An ordinary end would wait for the threads of Java, which go on.
        os._exit(1)
