"""Reserves by grpcio, with nothing but what the server's reflection says: client.py ADDRESS.

No code of this project or generated from it is used. At the end each unit of `seat` is confirmed."""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def message_class(descriptor):
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory().GetPrototype(descriptor)


def known_messages():
    """The messages of reflection, health and google.rpc of which this client reads a part."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="known.proto", package="known", syntax="proto3")

    def message(name, *fields):
        described = file.message_type.add(name=name)
        for field, number, kind, repeated, of in fields:
            label = FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL
            described.field.add(name=field, number=number, type=kind, label=label, type_name=of)

    text, data, number, inner = FIELD.TYPE_STRING, FIELD.TYPE_BYTES, FIELD.TYPE_INT32, FIELD.TYPE_MESSAGE
    message("ReflectionRequest", ("file_containing_symbol", 4, text, False, None))
    message("Files", ("file_descriptor_proto", 1, data, True, None))
    message("ReflectionResponse", ("file_descriptor_response", 4, inner, False, ".known.Files"))
    message("HealthRequest", ("service", 1, text, False, None))
    message("HealthResponse", ("status", 1, number, False, None))
    message("Any", ("type_url", 1, text, False, None), ("value", 2, data, False, None))
    message("Status", ("code", 1, number, False, None), ("message", 2, text, False, None),
            ("details", 3, inner, True, ".known.Any"))
    message("ErrorInfo", ("reason", 1, text, False, None), ("domain", 2, text, False, None))
    pool.Add(file)
    return lambda name: message_class(pool.FindMessageTypeByName("known." + name))


def check(condition, *what):
    if not condition:
        sys.exit(f"failed: {what}")


known = known_messages()
channel = grpc.insecure_channel(sys.argv[1])
grpc.channel_ready_future(channel).result(timeout=60)


def call(path, request, answer):
    method = channel.unary_unary(
        path, request_serializer=lambda message: message.SerializeToString(), response_deserializer=answer.FromString)
    return method(request, timeout=60)


def described(version):
    """The service's descriptors, from the server."""
    reflect = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=known("ReflectionResponse").FromString)
    asked = known("ReflectionRequest")(file_containing_symbol="saga.reservations.v1.Reservations")
    files = next(reflect(iter([asked]), timeout=60)).file_descriptor_response.file_descriptor_proto
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file)
    return pool


check(described("v1alpha").FindServiceByName("saga.reservations.v1.Reservations"), "reflection v1alpha")
pool = described("v1")
service = pool.FindServiceByName("saga.reservations.v1.Reservations")
messages = {name: message_class(pool.FindMessageTypeByName("saga.reservations.v1." + name))
            for name in ["Line", "ReserveRequest", "ConfirmRequest", "ReleaseRequest", "ExtendRequest", "ReturnRequest",
                         "GetRequest", "SetCapacityRequest", "GetResourceRequest", "Reservation", "Resource"]}
states = pool.FindEnumTypeByName("saga.reservations.v1.State").values_by_name
IF_FREE = pool.FindEnumTypeByName("saga.reservations.v1.Late").values_by_name["LATE_IF_FREE"].number


def do(method, **fields):
    described = service.methods_by_name[method]
    request = messages[described.input_type.name](**fields)
    return call(f"/saga.reservations.v1.Reservations/{method}", request, messages[described.output_type.name])


def refused(code, reason, method, **fields):
    try:
        answer = do(method, **fields)
    except grpc.RpcError as error:
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
        info = known("ErrorInfo").FromString(known("Status").FromString(details).details[0].value)
        check((error.code(), info.reason, info.domain) == (code, reason, "reservations"), method, error, info)
        return
    sys.exit(f"failed: {method} {fields} was not refused: {answer}")


def lines(**quantities):
    return [messages["Line"](resource=resource, quantity=quantity) for resource, quantity in quantities.items()]


health = call("/grpc.health.v1.Health/Check", known("HealthRequest")(service="saga.reservations.v1.Reservations"),
              known("HealthResponse"))
check(health.status == 1, health)

do("SetCapacity", resource="seat", capacity=5)
do("SetCapacity", resource="bag", capacity=1)
held = do("Reserve", key="a", lines=lines(seat=2, bag=1), ttl_millis=60_000)
check(held.state == states["STATE_HELD"].number and held.fencing_token > 0, held)
check(do("Reserve", key="a", lines=lines(bag=1, seat=2), ttl_millis=60_000) == held, "repeated")
check(do("Get", key="a") == held, "found")
refused(grpc.StatusCode.INVALID_ARGUMENT, "KEY_REUSED", "Reserve", key="a", lines=lines(seat=1), ttl_millis=60_000)
refused(grpc.StatusCode.FAILED_PRECONDITION, "INSUFFICIENT", "Reserve", key="b", lines=lines(bag=1), ttl_millis=60_000)
refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID", "Reserve", key="b", lines=[], ttl_millis=60_000)
refused(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "Reserve", key="b", lines=lines(meal=1), ttl_millis=60_000)
refused(grpc.StatusCode.FAILED_PRECONDITION, "STALE_TOKEN", "Confirm", key="a", fencing_token=held.fencing_token + 9)
longer = do("Extend", key="a", fencing_token=held.fencing_token, ttl_millis=120_000)
check(longer.expires_at_micros > held.expires_at_micros and longer.fencing_token == held.fencing_token, longer)
check(do("Release", key="late").state == states["STATE_RELEASED"].number, "a release without a reservation")
refused(grpc.StatusCode.FAILED_PRECONDITION, "ENDED", "Reserve", key="late", lines=lines(seat=1), ttl_millis=60_000)

intent = dict(lines=[messages["Line"](resource="signup/ada", quantity=1)], ttl_millis=60_000, unique=True)
first = do("Reserve", key="session-1", **intent)
refused(grpc.StatusCode.ABORTED, "CONFLICT", "Reserve", key="session-2", **intent)
do("Confirm", key="session-1", fencing_token=first.fencing_token)
refused(grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE", "Reserve", key="session-2", **intent)

confirmed = do("Confirm", key="a", fencing_token=held.fencing_token, late=IF_FREE)
check(confirmed.state == states["STATE_CONFIRMED"].number, confirmed)
refused(grpc.StatusCode.FAILED_PRECONDITION, "WRONG_STATE", "Release", key="a", fencing_token=held.fencing_token)
refused(grpc.StatusCode.FAILED_PRECONDITION, "BELOW_TAKEN", "SetCapacity", resource="seat", capacity=1)
check(do("Return", key="a", fencing_token=held.fencing_token).state == states["STATE_RETURNED"].number, "returned")


def race(number):
    try:
        mine = do("Reserve", key=f"racer-{number}", lines=lines(seat=1), ttl_millis=60_000)
    except grpc.RpcError as error:
        check(error.code() == grpc.StatusCode.FAILED_PRECONDITION, error)
        return 0
    return int(do("Confirm", key=f"racer-{number}", fencing_token=mine.fencing_token).state == states["STATE_CONFIRMED"].number)


with ThreadPoolExecutor(16) as threads:
    check(sum(threads.map(race, range(40))) == 5, "forty race for five seats")
check(do("GetResource", resource="seat").confirmed == 5, "five seats")
