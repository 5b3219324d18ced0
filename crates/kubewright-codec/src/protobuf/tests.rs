use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::encode::{self as writer};
use super::maker::Maker;
use super::table::{Form, Message, Type};
use super::transcode;
use super::wire::Reader;
use super::{
    Envelope, MAGIC, Mistake, ObjectType, encode, encode_event, encode_text, item, list_envelope, message,
};

fn type_of(group: &'static str, version: &'static str, kind: &'static str) -> ObjectType<'static> {
    ObjectType::of(group, version, kind).unwrap()
}

fn config_map() -> ObjectType<'static> {
    type_of("", "v1", "ConfigMap")
}

/// What an object becomes on its way through protobuf.
fn there_and_back(of: ObjectType<'_>, mut object: Value) -> Result<Value, Mistake> {
    object["apiVersion"] = of.api_version().into();
    object["kind"] = of.kind.into();
    of.decode(&encode(&object).unwrap())
}

fn delimited(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    writer::delimited(number, &mut out, |out| out.extend_from_slice(bytes));
    out
}

fn integer(number: u32, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    writer::integer(number, value, &mut out);
    out
}

fn envelope(of_type: &[u8], raw: &[u8]) -> Vec<u8> {
    [delimited(1, of_type), delimited(2, raw), delimited(3, b""), delimited(4, b"")].concat()
}

/// What the raw bytes of a message become.
fn raw(of: ObjectType<'_>, bytes: &[u8]) -> Result<Value, Mistake> {
    of.decode(&[&MAGIC, &envelope(b"", bytes)[..]].concat())
}

#[test]
fn a_zero_that_was_set_stays_and_one_that_was_not_is_gone() {
    let deployment = type_of("apps", "v1", "Deployment");
    let given = json!({"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "a"}]}}}});
    let decoded = there_and_back(deployment, given).unwrap();
    assert_eq!(decoded["spec"]["replicas"], 0);
    assert_eq!(decoded["spec"].get("minReadySeconds"), None);
    assert_eq!(decoded["spec"].get("progressDeadlineSeconds"), None);
    let pod = &decoded["spec"]["template"]["spec"];
    assert_eq!(pod.get("schedulerName"), None, "{pod}");
    assert_eq!(pod["containers"], json!([{"name": "a"}]));
}

#[test]
fn an_empty_message_says_something() {
    let given = json!({"spec": {"volumes": [{"name": "a", "emptyDir": {}}], "containers": []}});
    let decoded = there_and_back(type_of("", "v1", "Pod"), given).unwrap();
    assert_eq!(decoded["spec"]["volumes"], json!([{"name": "a", "emptyDir": {}}]));
}

/// `null` is such a time in the JSON that is stored: who sends `null` sends none, which decoding tells.
#[test]
fn a_time_without_contents_is_gos_zero_where_it_is_a_pointer() {
    let lease =
        there_and_back(type_of("coordination.k8s.io", "v1", "Lease"), json!({"spec": {"renewTime": null}}));
    assert_eq!(lease.unwrap()["spec"], json!({"renewTime": "0001-01-01T00:00:00.000000Z"}));
    let event = json!({"metadata": {}, "firstTimestamp": null, "message": "0001-01-01T00:00:00Z"});
    let event = there_and_back(type_of("", "v1", "Event"), event).unwrap();
    assert_eq!((event.get("firstTimestamp"), &event["message"]), (None, &json!("0001-01-01T00:00:00Z")));
}

#[test]
fn types_with_a_json_form_of_their_own_have_it() {
    for (of, given) in [
        (
            type_of("", "v1", "Event"),
            json!({"metadata": {"creationTimestamp": "2024-02-29T12:00:00Z"}, "eventTime": "2024-02-29T12:00:00.000001Z"}),
        ),
        (
            type_of("", "v1", "Service"),
            json!({"spec": {"ports": [{"port": 1, "targetPort": "http"}, {"port": 2, "targetPort": 0}]}}),
        ),
        (type_of("", "v1", "Secret"), json!({"data": {"a": "AAEC/w==", "b": ""}, "immutable": false})),
        (type_of("", "v1", "ResourceQuota"), json!({"spec": {"hard": {"cpu": "100m"}}})),
        (
            type_of("apps", "v1", "ControllerRevision"),
            json!({"data": {"a": [1, null, {"b": "c"}]}, "revision": 0}),
        ),
        (
            type_of("authorization.k8s.io", "v1", "SubjectAccessReview"),
            json!({"spec": {"extra": {"a": ["b", "c"], "d": []}}, "status": {"allowed": false}}),
        ),
        (
            type_of("", "v1", "ServiceAccount"),
            json!({"metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {".": {}}}, "time": "0001-01-01T00:00:01Z"}]}}),
        ),
    ] {
        let decoded = there_and_back(of, given.clone()).unwrap();
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(&decoded[name], value, "{}", of.kind);
        }
    }
}

#[test]
fn schemas_and_what_may_stand_for_them_are_told_apart() {
    let schema = json!({
        "$ref": "x",
        "additionalProperties": false,
        "default": {"a": 1},
        "dependencies": {"a": ["b"], "c": {"type": "string"}},
        "enum": [1, null, "a"],
        "items": {"type": "string", "x-kubernetes-int-or-string": true},
        "maximum": 10,
        "minimum": 0.5,
        "properties": {"p": {"additionalProperties": {"type": "string"}}, "q": {"items": [{}, {"nullable": true}]}},
    });
    let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
    let definition = type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let decoded = there_and_back(definition, json!({"spec": {"versions": [version]}})).unwrap();
    assert_eq!(decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
}

#[test]
fn the_envelope_says_the_type_and_may_leave_it_out() {
    assert_eq!(raw(config_map(), b""), Ok(json!({"apiVersion": "v1", "kind": "ConfigMap"})));
    let of_type = [delimited(1, b"v1"), delimited(2, b"Secret")].concat();
    let other = config_map().decode(&[&MAGIC, &envelope(&of_type, b"")[..]].concat()).unwrap_err();
    assert!(
        other.to_string().contains("(v1, Secret)") && other.to_string().contains("(v1, ConfigMap)"),
        "{other}"
    );
}

#[test]
fn the_options_of_a_deletion_come_in_any_group_and_version() {
    let options = type_of("meta.k8s.io", "v1", "DeleteOptions");
    let of_type = [delimited(1, b"apps/v1"), delimited(2, b"DeleteOptions")].concat();
    let body = [&MAGIC, &envelope(&of_type, &integer(1, 0))[..]].concat();
    assert_eq!(options.decode(&body).unwrap()["gracePeriodSeconds"], 0);
}

#[test]
fn what_comes_twice_is_merged_or_replaced_as_protobuf_has_it() {
    let twice = [
        delimited(1, &delimited(1, b"a")),
        delimited(1, &delimited(3, b"b")),
        delimited(1, &delimited(1, b"c")),
        delimited(1, &delimited(3, b"")),
    ];
    assert_eq!(raw(config_map(), &twice.concat()).unwrap()["metadata"], json!({"name": "c"}));
}

#[test]
fn numbers_may_be_packed_and_negative() {
    let pod = type_of("", "v1", "Pod");
    let packed = delimited(4, &[7, 0xac, 0x02]);
    let context = [packed, integer(4, -1)].concat();
    let decoded = raw(pod, &delimited(2, &delimited(14, &context))).unwrap();
    assert_eq!(decoded["spec"]["securityContext"]["supplementalGroups"], json!([7, 300, -1]));
}

#[test]
fn unknown_fields_are_skipped() {
    let bytes = [integer(99, 1), delimited(98, b"x"), delimited(1, &delimited(1, b"a"))].concat();
    assert_eq!(raw(config_map(), &bytes).unwrap()["metadata"], json!({"name": "a"}));
}

#[test]
fn a_body_that_is_no_envelope_is_told_what_it_should_be() {
    let expected = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (body, told) in [
        (&b""[..], "empty data"),
        (b"{}", expected),
        (b"k8s", expected),
        (b"k8s\0", "empty body"),
        (b"k8s\0\n", "unexpected EOF"),
    ] {
        assert_eq!(config_map().decode(body), Err(Mistake::Envelope(told.to_owned())));
    }
    let refused = config_map().refuse(&Mistake::Envelope("unexpected EOF".to_owned()), b"k8s\0\n");
    assert_eq!(
        refused.message,
        "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873000a)"
    );
}

#[test]
fn an_object_that_makes_no_sense_is_told_why() {
    let wrong = raw(config_map(), &integer(1, 1)).unwrap_err();
    assert_eq!(
        config_map().refuse(&wrong, b"").message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field metadata"
    );
    let event = type_of("", "v1", "Event");
    let late = delimited(1, &delimited(8, &integer(1, i64::MAX)));
    assert_eq!(
        raw(event, &late),
        Err(Mistake::Object("Time.MarshalJSON: year outside of range [0,9999]".to_owned()))
    );
}

#[test]
fn deep_nesting_is_refused() {
    let definition = type_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let nested = |depth| {
        let schema = (0..depth).fold(Vec::new(), |inner, _| delimited(28, &inner));
        raw(definition, &delimited(2, &delimited(7, &delimited(4, &delimited(1, &schema)))))
    };
    let refused = Err(Mistake::Object("recursion limit exceeded".to_owned()));
    let deepest = (0..200).take_while(|depth| nested(*depth).is_ok()).last().unwrap();
    let text = nested(deepest).unwrap().to_string();
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "what is accepted can be read again");
    assert!(deepest > 100);
    assert_eq!((nested(deepest + 1), nested(20_000)), (refused.clone(), refused.clone()));

    let revision = type_of("apps", "v1", "ControllerRevision");
    let inlined = |depth: usize| {
        let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        raw(revision, &delimited(2, &delimited(1, json.as_bytes())))
    };
    assert!(inlined(126).is_ok());
    assert_eq!(inlined(127), refused);
    assert!(inlined(10_000).unwrap_err().to_string().contains("exceeded max depth"));
}

/// All that is written of a message is a field of the schema: else strict validation would refuse what a client cannot
/// have meant.
/// The types that have metadata, among which are all kinds, and the options of deletions.
fn types() -> Vec<(String, String, String)> {
    let has_metadata = |message: &&'static Message| {
        let metadata = message.member("metadata").map(|member| member.field.form);
        matches!(metadata, Some(Form::One { of: Type::Message(of), .. }) if format!("{of:?}") == "meta/v1.ObjectMeta")
    };
    let named = |name: &str| {
        let (package, kind) = name.split_once('.').unwrap();
        let (group, version) = package.split_once('/').unwrap();
        let group = if group == "core" { "" } else { group };
        (group.to_owned(), version.to_owned(), kind.to_owned())
    };
    let of_objects = Message::all().filter(|(_, message)| has_metadata(message)).map(|(name, _)| named(name));
    let mut types: Vec<_> = of_objects.filter(|(group, ..)| group != "meta").collect();
    assert!(types.len() > 60, "{types:?}");
    types.push(("meta.k8s.io".to_owned(), "v1".to_owned(), "DeleteOptions".to_owned()));
    types
}

#[test]
fn every_kind_is_the_same_after_its_way_through_protobuf() {
    for (group, version, kind) in types() {
        let of = ObjectType::of(&group, &version, &kind).unwrap();
        for round in 0..8u64 {
            let bytes: Vec<u8> =
                (0..4000u64).map(|at| (at * 0x9e37 + round * 0x85eb + 17).rotate_left(7) as u8).collect();
            let mut object = Value::Object(Maker::new(&bytes).object(of.message, 3));
            object["apiVersion"] = of.api_version().into();
            object["kind"] = kind.clone().into();
            let text = encode_text(stored_form(&object).as_bytes()).unwrap();
            assert_eq!(of.decode(&text), Ok(object.clone()), "{kind} as text");
            let decoded = of.decode(&encode(&object).unwrap());
            assert_eq!(decoded, Ok(object), "{kind}");
        }
    }
}

/// As objects are stored: the kind and the version come first.
fn stored_form(object: &Value) -> String {
    let mut rest = object.clone();
    let members = rest.as_object_mut().unwrap();
    let (kind, version) = (members.remove("kind").unwrap(), members.remove("apiVersion").unwrap());
    let rest = rest.to_string();
    let comma = if rest == "{}" { "" } else { "," };
    format!("{{\"kind\":{kind},\"apiVersion\":{version}{comma}{}", &rest[1..])
}

#[test]
fn a_list_is_the_same_whether_it_is_read_first_or_while_it_is_written() {
    let item = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]},
        "data": {"k\n": "v"}, "binaryData": null, "immutable": false});
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "remainingItemCount": 3}, "items": [item, {"metadata": {"name": "b"}}]});
    // Both read back: the order of fields is nobody's business.
    let of = config_map();
    let items = |encoded: &[u8]| -> Vec<Value> {
        let envelope = Envelope::open(encoded).unwrap();
        let mut reader = Reader::new(envelope.raw);
        let mut items = Vec::new();
        while let Some((number, wire)) = reader.field().unwrap() {
            let mut object = Map::new();
            let message = if number == 1 { Message::named("meta/v1.ListMeta").unwrap() } else { of.message };
            transcode::message(message, wire.bytes("x").unwrap(), &mut object, transcode::LEVELS).unwrap();
            // The metadata first, wherever they stand.
            items.insert(if number == 1 { 0 } else { items.len() }, Value::Object(object));
        }
        items
    };
    let streamed = items(&encode_text(stored_form(&list).as_bytes()).unwrap());
    assert_eq!(streamed.len(), 3);
    assert_eq!(streamed, items(&encode(&list).unwrap()));
    // What does not begin as what is stored does is read first.
    assert_eq!(items(&encode_text(list.to_string().as_bytes()).unwrap()), streamed);
    assert_eq!(encode_text(b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":7}x"), None);
}

#[test]
fn messages_that_are_kept_make_the_answers_that_are_made_of_the_text() {
    let items: Vec<Value> = ["a".to_owned(), "b".repeat(300)]
        .map(|name| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}}))
        .into();
    let messages: Vec<Vec<u8>> =
        items.iter().map(|item| message(stored_form(item).as_bytes()).unwrap()).collect();
    for (item, message) in items.iter().zip(&messages) {
        let whole = encode_text(stored_form(item).as_bytes()).unwrap();
        assert_eq!(super::envelope("v1", "ConfigMap", message), whole);
    }
    let metadata = json!({"resourceVersion": "7"});
    let texts: Vec<String> = items.iter().map(stored_form).collect();
    let list = format!(
        "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{metadata},\"items\":[{}]}}",
        texts.join(",")
    );
    let framed: Vec<Vec<u8>> =
        messages.iter().map(|message| [item(message.len()), message.clone()].concat()).collect();
    let (head, tail) = list_envelope("v1", "ConfigMapList", &metadata, framed.concat().len()).unwrap();
    assert_eq!([&head, &framed.concat(), tail].concat(), encode_text(list.as_bytes()).unwrap());
    // The rest of an object is there whatever one of its values is.
    let odd = b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"data\":7}";
    assert_eq!(message(odd), Some(delimited(1, &delimited(1, b"a"))));
    assert_eq!(message(b"{\"kind\":\"Thing\",\"apiVersion\":\"example.com/v1\"}"), None);
}

#[test]
fn lists_statuses_and_metadata_have_messages() {
    let list = json!({
        "kind": "ConfigMapList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "x", "remainingItemCount": 3},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let item = delimited(2, &delimited(1, &delimited(1, b"a")));
    let encoded = encode(&list).unwrap();
    assert!(encoded.windows(item.len()).any(|window| window == item));

    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "m", "reason": "NotFound",
        "details": {"name": "a", "causes": [{"field": "f"}]}, "code": 404,
    });
    let raw = [
        delimited(1, b""),
        delimited(2, b"Failure"),
        delimited(3, b"m"),
        delimited(4, b"NotFound"),
        delimited(5, &[delimited(1, b"a"), delimited(4, &delimited(3, b"f"))].concat()),
        integer(6, 404),
    ];
    let of_type = [delimited(1, b"v1"), delimited(2, b"Status")].concat();
    assert_eq!(encode(&status).unwrap(), [&MAGIC, &envelope(&of_type, &raw.concat())[..]].concat());

    for (api_version, kind) in
        [("meta.k8s.io/v1", "PartialObjectMetadata"), ("meta.k8s.io/v1", "PartialObjectMetadataList")]
    {
        assert!(encode(&json!({"apiVersion": api_version, "kind": kind})).is_some(), "{kind}");
    }
    assert_eq!(encode(&json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table"})), None);
    assert_eq!(encode(&json!({"apiVersion": "example.com/v1", "kind": "Thing"})), None);
}

#[test]
fn an_event_is_framed_by_its_length() {
    let frame = encode_event("ADDED", b"k8s\0x");
    let event = [delimited(1, b"ADDED"), delimited(2, &delimited(1, b"k8s\0x"))].concat();
    assert_eq!(frame, [&[0, 0, 0, event.len() as u8], &event[..]].concat());
}

#[test]
fn long_messages_have_long_lengths() {
    let long = "x".repeat(40_000);
    let map = json!({"data": {"a": long, "b": "y".repeat(127), "c": "z".repeat(128)}});
    let decoded = there_and_back(config_map(), map.clone()).unwrap();
    assert_eq!(decoded["data"], map["data"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_object_is_the_same_after_its_way_through_protobuf(
        which in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let types = types();
        let (group, version, kind) = &types[which.index(types.len())];
        let of = ObjectType::of(group, version, kind).unwrap();
        let mut object = Value::Object(Maker::new(&bytes).object(of.message, 8));
        object["apiVersion"] = of.api_version().into();
        object["kind"] = kind.clone().into();
        let text = encode_text(stored_form(&object).as_bytes()).unwrap();
        prop_assert_eq!(of.decode(&text), Ok(object.clone()));
        prop_assert_eq!(there_and_back(of, object.clone()), Ok(object));
    }

    #[test]
    fn any_bytes_have_an_answer(
        which in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
        seed in prop::collection::vec(any::<u8>(), 0..500),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        let types = types();
        let (group, version, kind) = &types[which.index(types.len())];
        let of = ObjectType::of(group, version, kind).unwrap();
        let _ = of.decode(&noise);
        let _ = raw(of, &noise);
        let object = Value::Object(Maker::new(&seed).object(of.message, 5));
        let mut object = object;
        object["apiVersion"] = of.api_version().into();
        object["kind"] = kind.clone().into();
        let mut body = encode(&object).unwrap();
        for (place, byte) in flips {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let _ = of.decode(&body);
        body.truncate(cut.index(body.len()));
        let _ = of.decode(&body);
    }
}
