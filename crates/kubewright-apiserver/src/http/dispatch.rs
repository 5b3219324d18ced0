//! From a request for objects to a call of the engine, and back to a response.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use kubewright_codec::body::{self, Decoded};
use kubewright_codec::negotiate::{BodyEncoding, Encoding, MediaTypeOptions, Offer, Shape, media_type};
use kubewright_codec::protobuf::{self, ObjectType};
use kubewright_codec::request::{Query, Target};
use kubewright_engine::request::{Call, DeleteOptions, DeletedTogether, ListOptions, WriteOptions};
use kubewright_engine::shape::{IncludeObject, Messages, Pieces, Shaper};
use kubewright_engine::verbs::{self, Part, WriteResult, Written};
use kubewright_engine::watch;
use kubewright_identity::authn::User;
use kubewright_kinds::{Kind, Role, Subresource, Summary, Verbs, encode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::{self, Patch};
use kubewright_store::Entry;

use super::aggregation;
use super::components;
use super::in_flight::{self, InFlight, Place};
use super::incoming;
use super::length::{Extent, length};
use super::places::Length;
use super::respond;
use super::response_body::ResponseBody;
use super::service::{ApiServer, Incoming};
use super::subresources;
use super::upgrade::Upgrade;
use super::websocket;
use std::sync::Arc;

/// Subresources that are kinds of their own, which have no table.
const COMPUTED: [&str; 3] = ["binding", "eviction", "token"];
/// Subresources that are a part of the object, and have no table either.
const PLAIN: [&str; 4] = ["approval", "finalize", "ephemeralcontainers", "resize"];

/// A request whose body has been read.
pub(super) struct RequestInfo<'a> {
    pub server: &'a ApiServer,
    pub call: Call<'a>,
    pub verb: &'a str,
    pub query: &'a Query,
    pub method: &'a Method,
    pub uri: &'a http::Uri,
    pub headers: &'a http::HeaderMap,
    pub body: Bytes,
    pub wanted: MediaTypeOptions,
    /// The path that is asked for behind a proxy.
    pub behind: Option<&'a str>,
    /// The connection, if the client wants to go on in another protocol.
    pub upgrade: Option<Upgrade>,
}

pub(super) async fn answer(
    server: &ApiServer,
    incoming: Incoming<'_>,
    verb: &'static str,
    target: Target,
) -> Result<Response<ResponseBody>, ApiError> {
    let named = match &*target.group {
        "" => ["api", &target.version, ""],
        group => ["apis", group, &target.version],
    };
    if let Some(service) = aggregation::elsewhere(server, &named) {
        let level = server.in_flight().level(&incoming.user, verb, &target);
        let level = level.filter(|_| !in_flight::lasts(verb, &target));
        let place = level.map(|level| level.enter(&incoming.user)).transpose()?;
        let answer = aggregation::answer(server, &service, incoming).await;
        return Ok(answer.map(|body| body.holding(place)));
    }
    let kind = find(server, &target)?;
    // Custom objects of all namespaces are listed and watched, and nothing else (`possiblyAcrossAllNamespacesVerbs`).
    let everywhere = kind.namespaced() && target.namespace.is_empty();
    if kind.custom.is_some() && everywhere && !matches!(verb, "list" | "watch") {
        return Err(ApiError::no_such_path());
    }
    let (parts, query) = (&incoming.parts, &incoming.query);
    // What is behind a proxy has its own rules.
    let passes = target.subresource == "proxy";
    if kind.custom.is_none() && (parts.method == Method::HEAD && !passes || target.watch && verb != "watch") {
        return Err(ApiError::method_not_allowed());
    }
    if kind.verbs == Verbs::CreateOnly && verb != "create" {
        return Err(ApiError::method_not_allowed());
    }
    if kind.custom.is_none() && !target.subresource.is_empty() {
        subresources::check_route(&kind, &target.subresource, verb, &parts.method)?;
    }
    if verb == "patch" && kind.custom.is_none() && !passes {
        check_patch_type(media_type(&parts.headers))?;
    }
    if !target.name.is_empty() && !matches!(verb, "create" | "update" | "") {
        object::check_key(&target.name)?;
    }
    let offer = match (verb, kind.custom.is_some()) {
        ("watch", false) => Offer::Watch,
        ("watch", true) => Offer::CustomWatch,
        ("list", false) => Offer::List,
        (_, false) if has_no_table(&kind, &target.subresource) => Offer::Computed,
        (_, false) => Offer::Object,
        (_, true) => Offer::Custom,
    };
    let is_routed = passes || MediaTypeOptions::is_routed(&parts.headers, offer);
    let wanted = MediaTypeOptions::of(&parts.headers, query, offer);
    let wanted = match wanted {
        Err(_) if passes => MediaTypeOptions::of(&http::HeaderMap::new(), query, offer),
        wanted => wanted,
    };
    let outcome = match wanted {
        Ok(wanted) => answer_for(server, &kind, incoming, verb, target, wanted).await,
        // What a definition does not enable is not there, whatever form is wanted of it.
        Err(_) if lacks_subresource(&kind, &target.subresource) => {
            Err(ApiError::not_found(&*kind, &target.name))
        }
        Err(error) if verb == "patch" => {
            Err(unknown_patch(&kind, media_type(&parts.headers)).unwrap_or(error))
        }
        Err(error) => Err(error),
    };
    // A deprecated version warns of itself first, and on failures too.
    match (kind.deprecation(), outcome) {
        (None, outcome) => outcome,
        (Some(warning), Ok(mut response)) => {
            respond::warn_first(&mut response, warning);
            Ok(response)
        }
        // What no version of it can be asked to do has nothing to do with it.
        (Some(_), Err(error)) if !is_routed || error == ApiError::method_not_allowed() => Err(error),
        (Some(warning), Err(error)) => Err(error.with_warnings(vec![warning.to_owned()])),
    }
}

fn lacks_subresource(kind: &Kind, subresource: &str) -> bool {
    kind.custom.is_some() && !subresource.is_empty() && kind.subresource(subresource).is_none()
}

async fn answer_for(
    server: &ApiServer,
    kind: &Arc<Kind>,
    incoming: Incoming<'_>,
    verb: &'static str,
    target: Target,
    wanted: MediaTypeOptions,
) -> Result<Response<ResponseBody>, ApiError> {
    let level = server.in_flight().level(&incoming.user, verb, &target);
    let body = match verb {
        "get" | "list" | "watch" => Bytes::new(),
        _ => {
            let size = incoming.body.size_hint();
            let _reading = level.map(|level| level.body(&incoming.user, &size)).transpose()?;
            incoming::collect(incoming.body, server.settings().request_timeout).await?
        }
    };
    // A place is for who has said all: one whose body does not come would keep it from others.
    let place =
        level.filter(|_| in_flight::counts(&target)).map(|level| level.enter(&incoming.user)).transpose()?;
    let Incoming { parts, query, user, .. } = incoming;
    let request = Request {
        server: server.clone(),
        kind: Arc::clone(kind),
        parts,
        query,
        user,
        verb,
        target,
        body,
        wanted,
        place,
    };
    let length = match request.length() {
        Length::Moment => Length::Moment,
        _ if InFlight::is_urgent(&request.user, &request.target) => Length::Urgent,
        length => length,
    };
    if request.has_consequences() {
        return server.places().finish(length, request.answer()).await?;
    }
    server.places().run(length, request.answer()).await?
}

/// All that the work on a request is about.
struct Request {
    server: ApiServer,
    kind: Arc<Kind>,
    parts: Parts,
    query: Query,
    user: User,
    verb: &'static str,
    target: Target,
    body: Bytes,
    wanted: MediaTypeOptions,
    /// What it takes among those in flight.
    place: Option<Place>,
}

impl Request {
    fn call(&self) -> Call<'_> {
        let Target { namespace, name, .. } = &self.target;
        Call { kind: &self.kind, namespace, name, user: &self.user }
    }

    /// How long the work on it may take.
    fn length(&self) -> Length {
        // What is passed on to a kubelet is no work of ours.
        if !in_flight::counts(&self.target) {
            return Length::Moment;
        }
        let engine = self.server.engine();
        let snapshot = engine.snapshot();
        let object = (!self.target.name.is_empty()).then(|| engine.entry(self.call()).ok()).flatten();
        let extent = Extent {
            body: self.body.len(),
            query: self.parts.uri.query().map_or(0, str::len),
            object: object.map_or(0, |entry| entry.bytes.len()),
            objects: snapshot.len(&self.kind.collection),
            policies: engine.admission().has_policies(&snapshot),
        };
        length(&self.kind, self.verb, self.wanted, extent)
    }

    /// Whether the server goes on after the commit: it must, whether the client waits for it or not.
    fn has_consequences(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch") && verbs::has_follow_up(&self.kind)
    }

    async fn answer(mut self) -> Result<Response<ResponseBody>, ApiError> {
        let place = self.place.take();
        let info = RequestInfo {
            server: &self.server,
            call: self.call(),
            verb: self.verb,
            query: &self.query,
            method: &self.parts.method,
            uri: &self.parts.uri,
            headers: &self.parts.headers,
            body: self.body.clone(),
            wanted: self.wanted,
            behind: self.target.behind.as_deref(),
            upgrade: Upgrade::of(&self.parts),
        };
        if self.kind.behaviour.role == Role::ComponentStatus && self.target.subresource.is_empty() {
            return Ok(components::answer(&info).await?.map(|body| body.holding(place)));
        }
        let of_object = self.target.subresource.is_empty() && self.kind.verbs != Verbs::CreateOnly;
        if of_object && self.verb == "watch" {
            return watched(&info, place).await;
        }
        let response = if of_object {
            objects(&info).await?
        } else if self.target.subresource.is_empty() {
            subresources::answer_review(&info).await?
        } else {
            subresources::answer(&info, &self.target.subresource).await?
        };
        Ok(response.map(|body| body.holding(place)))
    }
}

/// Whether what is served there cannot be shown as a table: its storage has no converter to one.
fn has_no_table(kind: &Kind, subresource: &str) -> bool {
    kind.verbs == Verbs::CreateOnly
        || COMPUTED.contains(&subresource)
        || PLAIN.contains(&subresource)
        || subresource == "status" && kind.behaviour.status_has_no_table
}

/// The kind that a target names, where it is in the right place.
fn find(server: &ApiServer, target: &Target) -> Result<Arc<Kind>, ApiError> {
    let kinds = server.engine().kinds();
    let Some(kind) = kinds.get(&target.group, &target.version, &target.resource) else {
        return Err(match kinds.has_built_in_group(&target.group) {
            true => ApiError::no_such_resource(),
            false => ApiError::no_such_path(),
        });
    };
    let in_place = if kind.namespaced() {
        !target.namespace.is_empty() || target.name.is_empty()
    } else {
        target.namespace.is_empty()
    };
    let everywhere = kind.namespaced() && target.namespace.is_empty();
    // What is only created is created somewhere, and has no name.
    let created = kind.verbs == Verbs::CreateOnly && (everywhere || !target.name.is_empty());
    // What is only read has no path for watches.
    let watched = kind.verbs == Verbs::ReadOnly && target.watch;
    match (in_place && !created && !watched, &kind.custom) {
        (true, _) => Ok(Arc::clone(kind)),
        (false, None) => Err(ApiError::no_such_resource()),
        (false, Some(_)) => Err(ApiError::no_such_path()),
    }
}

/// The router has routes for the patches of built-in kinds by their media types, and words of its own for others.
fn check_patch_type(media_type: &str) -> Result<(), ApiError> {
    if [patch::JSON, patch::MERGE, patch::STRATEGIC, patch::APPLY].contains(&media_type) {
        return Ok(());
    }
    let why = "415: Unsupported Media Type";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", why)
        .with_details(serde_json::json!({})))
}

/// What is told of a patch to a custom object whose type nobody knows, before it is looked at what the client accepts.
fn unknown_patch(kind: &Kind, media_type: &str) -> Option<ApiError> {
    let schema = kind.custom.is_none().then(|| kind.schema());
    let error = patch::Patch::parse(media_type, b"{}", schema).err();
    error.filter(|error| error.code == StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

async fn objects(info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
    let (engine, call) = (info.server.engine(), info.call);
    let named = !call.name.is_empty();
    let everywhere = call.kind.namespaced() && call.namespace.is_empty();
    match info.verb {
        "get" => {
            let entry = verbs::get(engine, call, info.query.text("resourceVersion")).await?;
            info.found(&entry)
        }
        "list" => {
            let options = ListOptions::read(info.query, call.kind, false)?;
            let shaper = info.shaper()?;
            let list = verbs::list(engine, call, &options).await?;
            match if info.wants_messages() { Messages::of(list) } else { Err(list) } {
                Ok(messages) => Ok(info.listed_as_messages(messages)),
                Err(list) => info.listed(shaper.list(list)?),
            }
        }
        // kube-apiserver takes a POST to the path of a custom object, too, and looks at the name in the body alone.
        "create" if !everywhere && (!named || call.kind.custom.is_some()) => {
            let call = Call { name: "", ..call };
            let options = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
            info.written(verbs::create(engine, call, info.decoded()?, options).await?)
        }
        "update" if named => {
            let options = WriteOptions::read(info.query, info.headers, "UpdateOptions")?;
            info.written(verbs::update(engine, call, Part::Main, info.decoded()?, options).await?)
        }
        "patch" if named => {
            let (patch, options) = info.patch()?;
            info.written(verbs::patch(engine, call, Part::Main, patch, options).await?)
        }
        "delete" => info.written(verbs::delete(engine, call, &info.delete_options()?).await?),
        "deletecollection" if call.kind.verbs == Verbs::All && !everywhere => {
            let list = DeletedTogether::read(info.query, call.kind)?;
            let (gone, warnings) =
                verbs::delete_collection(engine, call, list, &info.delete_options()?).await?;
            match info.shaper().and_then(|shaper| shaper.list(gone)) {
                Ok(gone) => {
                    let mut response = respond::json(StatusCode::OK, gone.whole(), info.wanted.encoding);
                    respond::warn(&mut response, &warnings);
                    Ok(response)
                }
                // They are gone, in whatever form that is told.
                Err(error) => Err(error.with_warnings(warnings)),
            }
        }
        // kube-apiserver looks at the name of a custom object where it is needed, and not at the path
        // (`k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go`).
        "update" | "patch" if call.kind.custom.is_some() => {
            Err(ApiError::bad_request("name must be provided"))
        }
        "" if call.kind.custom.is_some() => Err(ApiError::verb_not_supported(call.kind, "")),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// The answer to a watch, which keeps its place until what was there is told.
async fn watched(info: &RequestInfo<'_>, place: Option<Place>) -> Result<Response<ResponseBody>, ApiError> {
    let options = ListOptions::read(info.query, info.call.kind, true)?.for_name(info.call)?;
    let ended = info.server.shutdown().clone();
    let encoding = info.wanted.encoding;
    let life = watch::Life {
        shortest: info.server.settings().min_request_timeout,
        ended,
        beginning: place.map(|place| Box::new(place) as _),
    };
    let engine = info.server.engine();
    let events = watch::open(engine, info.call, &options, info.shaper()?, encoding, life).await?;
    Ok(match &info.upgrade {
        Some(upgrade) if encoding != Encoding::Protobuf && websocket::is_asked(info.headers) => {
            match websocket::Handshake::read(info.method, info.headers) {
                Ok(handshake) => websocket::answer(upgrade, handshake, "", websocket::lines(events)),
                Err(refused) => *refused,
            }
        }
        _ => respond::stream(events, encoding),
    })
}

impl RequestInfo<'_> {
    /// Whether objects are wanted whole, and as protobuf.
    fn wants_messages(&self) -> bool {
        self.wanted.encoding == Encoding::Protobuf && self.wanted.shape == Shape::Object
    }

    /// The answer to a read of an object, which is in the version that was asked for.
    pub(super) fn found(&self, entry: &Entry<Summary>) -> Result<Response<ResponseBody>, ApiError> {
        let (kind, encoding) = (self.call.kind, self.wanted.encoding);
        if self.wants_messages()
            && let Some(message) = encode::message(kind, entry)
        {
            let answer = protobuf::envelope(&kind.api_version(), &kind.kind, &message);
            return Ok(respond::bytes_of(StatusCode::OK, answer.into(), encoding.media_type()));
        }
        Ok(respond::json(StatusCode::OK, self.shaper()?.object(encode::object(kind, entry))?, encoding))
    }

    /// The answer to a list as protobuf.
    fn listed_as_messages(&self, messages: Messages) -> Response<ResponseBody> {
        let encoding = self.wanted.encoding;
        match messages.is_small() {
            true => respond::bytes_of(StatusCode::OK, messages.whole(), encoding.media_type()),
            false => respond::pieces(messages, encoding),
        }
    }

    /// The answer to a list: made while the client reads it, where it is long and nothing has to be known of all of it.
    fn listed(&self, pieces: Pieces) -> Result<Response<ResponseBody>, ApiError> {
        let encoding = self.wanted.encoding;
        if encoding == Encoding::Json && !pieces.is_small() {
            return Ok(match self.wanted.shape {
                // Custom objects may have to be made anew.
                Shape::Object if self.call.kind.custom.is_none() => respond::pieces(pieces, encoding),
                _ => respond::rendered(pieces, encoding),
            });
        }
        Ok(respond::json(StatusCode::OK, pieces.whole(), encoding))
    }

    /// The answer to a write.
    pub(super) fn written(&self, written: Written) -> Result<Response<ResponseBody>, ApiError> {
        self.written_as(self.call.kind, written)
    }

    /// The same where what is answered is of another kind than what was asked.
    pub(super) fn written_as(
        &self,
        kind: &Arc<Kind>,
        written: Written,
    ) -> Result<Response<ResponseBody>, ApiError> {
        let bytes = match written.result {
            WriteResult::Object(bytes) => self.shaper_of(kind)?.object(bytes)?,
            WriteResult::Status(bytes) => bytes,
        };
        let mut response = respond::json(written.code, bytes, self.wanted.encoding);
        respond::warn(&mut response, &written.warnings);
        Ok(response)
    }

    /// The body as an object.
    pub(super) fn decoded(&self) -> Result<Decoded, ApiError> {
        let kind = self.call.kind;
        let built_in = kind.custom.is_none();
        let of = built_in.then(|| ObjectType::of(&kind.group, &kind.version, &kind.kind)).flatten();
        self.decoded_as(of, &kind.kind)
    }

    /// The body of a subresource as an object.
    pub(super) fn decoded_of(&self, subresource: &Subresource) -> Result<Decoded, ApiError> {
        match subresource.body_kind() {
            Some((group, version, kind)) => self.decoded_as(ObjectType::of(group, version, kind), kind),
            None => self.decoded(),
        }
    }

    /// The body as an object of a type, which is said to be of `kind`.
    fn decoded_as(&self, protobuf: Option<ObjectType<'_>>, kind: &str) -> Result<Decoded, ApiError> {
        match BodyEncoding::of(self.headers, protobuf)? {
            BodyEncoding::Text(encoding) => body::decode(&self.body, encoding)
                .map_err(|reason| body::unrecognized(kind, &reason, &self.body)),
            BodyEncoding::Protobuf(object) => match object.decode(&self.body) {
                Ok(value) => Ok(Decoded::of(value)),
                Err(mistake) => Err(object.refuse(&mistake, &self.body)),
            },
        }
    }

    /// The body as a patch, and its options. What is wrong is told in the order of kube-apiserver: a media type that is none of a
    /// patch, options, that there is no such object, and only then what the patch itself says
    /// (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).
    pub(super) fn patch(&self) -> Result<(Patch, WriteOptions), ApiError> {
        let kind = self.call.kind;
        let schema = kind.custom.is_none().then(|| kind.schema());
        let engine = self.server.engine();
        let version = engine.kinds().version();
        let media_type = media_type(self.headers);
        match super::patch_words::parse(version, media_type, &self.body, schema) {
            Err(error) if error.code == StatusCode::UNSUPPORTED_MEDIA_TYPE => Err(error),
            parsed => {
                let options = WriteOptions::of_patch(self.query, self.headers)?;
                let patch = parsed.map_err(|error| {
                    let is_first = error.message == super::patch_words::NO_JSON || media_type == patch::APPLY;
                    if is_first || self.is_there() {
                        error
                    } else {
                        ApiError::not_found(kind, self.call.name)
                    }
                })?;
                Ok((patch, options))
            }
        }
    }

    fn is_there(&self) -> bool {
        self.server.engine().snapshot().get(&self.call.kind.collection, &self.call.key()).is_some()
    }

    fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let version = self.server.engine().kinds().version();
        if self.body.is_empty() {
            return DeleteOptions::read(version, self.query, None);
        }
        let value =
            match BodyEncoding::of(self.headers, ObjectType::of("meta.k8s.io", "v1", "DeleteOptions"))? {
                BodyEncoding::Text(encoding) => {
                    body::decode(&self.body, encoding).map(|decoded| decoded.value)
                }
                BodyEncoding::Protobuf(object) => {
                    object.decode(&self.body).map_err(|mistake| mistake.to_string())
                }
            };
        DeleteOptions::read(version, self.query, Some(&value.map_err(ApiError::bad_request)?))
    }

    /// What brings the answer into the shape that is wanted.
    pub(super) fn shaper(&self) -> Result<Shaper, ApiError> {
        self.shaper_of(self.call.kind)
    }

    fn shaper_of(&self, kind: &Arc<Kind>) -> Result<Shaper, ApiError> {
        let is_table = matches!(self.wanted.shape, Shape::Table(_));
        let include = match self.query.text("includeObject") {
            _ if !is_table => IncludeObject::Metadata,
            "" | "Metadata" => IncludeObject::Metadata,
            "Object" => IncludeObject::Object,
            "None" => IncludeObject::None,
            other => {
                let error =
                    FieldError::not_supported("includeObject", other, ["Metadata", "None", "Object", ""]);
                return Err(ApiError::invalid_of("meta.k8s.io", "TableOptions", "", &[error]));
            }
        };
        let now = self.server.engine().world().clock.now();
        Ok(Shaper::new(kind, self.wanted.shape, include, now))
    }
}
