use super::*;

fn headers(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept.parse().unwrap());
    headers
}

fn wanted(accept: &str, offer: Offer) -> Result<(Encoding, Shape), String> {
    MediaTypeOptions::of(&headers(accept), &Query::default(), offer)
        .map(|wanted| (wanted.encoding, wanted.shape))
        .map_err(|error| error.message)
}

const JSON: (Encoding, Shape) = (Encoding::Json, Shape::Object);
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[test]
fn kubectls_table_header_gets_a_table() {
    let clause = format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
    assert_eq!(wanted(&clause, Offer::List), Ok((Encoding::Json, Shape::Table(MetaVersion::V1))));
    let beta = TABLE.replace("v1;", "v1beta1;");
    assert_eq!(wanted(&beta, Offer::Object), Ok((Encoding::Json, Shape::Table(MetaVersion::V1Beta1))));
}

/// Asked of kube-apiserver v1.36.3.
#[test]
fn the_best_that_can_be_had_is_chosen() {
    for (accept, expected) in [
        ("application/json;q=0.5,application/yaml;q=0.9", (Encoding::Yaml, Shape::Object)),
        ("text/html,*/*;q=0.1", JSON),
        ("application/json;q=0", JSON),
        ("application/json;stream=watch", JSON),
        ("application/json;foo=bar", JSON),
        ("application/json;pretty=1", (Encoding::PrettyJson, Shape::Object)),
        ("application/vnd.kubernetes.protobuf,application/json", (Encoding::Protobuf, Shape::Object)),
        ("application/json;as=Nope;v=v1;g=meta.k8s.io,application/json", JSON),
        ("*/*;as=Table;v=v1;g=meta.k8s.io", (Encoding::Json, Shape::Table(MetaVersion::V1))),
    ] {
        assert_eq!(wanted(accept, Offer::Object), Ok(expected), "{accept}");
    }
}

#[test]
fn the_router_refuses_what_it_does_not_know_by_name() {
    let refused = |accept, offer| wanted(accept, offer).expect_err("must be refused");
    assert_eq!(
        refused("text/html", Offer::Object),
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    assert!(refused("application/*", Offer::List).ends_with(
        "protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    ));
    assert!(refused("application/yaml", Offer::JsonAlone).ends_with("representations: application/json"));
    assert_eq!(wanted("application/*", Offer::Custom), Ok(JSON));
}

#[test]
fn what_cannot_be_made_is_not_acceptable() {
    for accept in ["application/json;as=Nope;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=foo"] {
        assert_eq!(
            wanted(accept, Offer::Object),
            Err("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf".to_owned())
        );
    }
    assert_eq!(
        wanted("application/yaml", Offer::Watch),
        Err("only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch".to_owned())
    );
    assert!(wanted(protobuf::MEDIA_TYPE, Offer::Custom).is_err());
    let metadata = format!("{};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", protobuf::MEDIA_TYPE);
    assert_eq!(wanted(&metadata, Offer::Custom), Ok((Encoding::Protobuf, Shape::Metadata(MetaVersion::V1))));
}

#[test]
fn a_status_is_written_as_the_client_reads_it_or_for_people() {
    let status = |accept: &str| for_status(&headers(accept), &Query::default());
    assert_eq!(status("application/yaml"), Encoding::Yaml);
    assert_eq!(status("application/vnd.kubernetes.protobuf, application/json"), Encoding::Protobuf);
    assert_eq!(status("application/*"), Encoding::Json);
    assert_eq!(status("text/html"), Encoding::PrettyJson);
    assert_eq!(status(TABLE), Encoding::PrettyJson);
    assert_eq!(for_status(&HeaderMap::new(), &Query::parse(Some("pretty=true"))), Encoding::PrettyJson);
}
