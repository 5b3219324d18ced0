//! Requests on the objects of a kind in a namespace, whatever the kind's scope.
//!
//! kube's `Api` wants to know at compile time whether a kind is namespaced; generic code does not.

use std::marker::PhantomData;

use http::{StatusCode, uri::InvalidUri};
use http_body_util::BodyExt;
use kube::{
    Client, Resource,
    api::{
        DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Request, ValidationDirective,
    },
    client::Body,
    core::{Status, request},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    accesses,
    cache::Raw,
    object::{from_json, to_json},
    rbac::Right,
};

type Result<T> = std::result::Result<T, kube::Error>;
type BuiltRequest = std::result::Result<http::Request<Vec<u8>>, request::Error>;

pub(crate) struct Endpoint<'a, K> {
    client: &'a Client,
    request: Request,
    kind: PhantomData<fn() -> K>,
}

/// What the server answered to a write, without managed fields: half of most objects, and what takes most time to read.
pub(crate) struct ApiResponse<K> {
    pub(crate) object: K,
    /// The object as the server wrote it.
    pub(crate) text: String,
    /// Its managed fields, as JSON.
    pub(crate) managed_fields: Option<Box<str>>,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
}

/// What the server answered to a deletion.
pub(crate) enum Deleted<K> {
    /// The object, as it was or as it is now.
    Object(Box<K>),
    /// That it is gone, with its uid if the answer has it.
    Gone { uid: Option<String> },
}

/// Objects of a list, as far as one answer has them.
pub(crate) struct Page<K> {
    pub(crate) objects: Vec<K>,
    /// Where the next page begins; none after the last.
    pub(crate) rest: Option<String>,
}

/// How a write is done, whatever it writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// The server tells what would come of it, and changes nothing.
    pub(crate) dry_run: bool,
    /// As whose the fields are noted that it changes.
    pub(crate) field_owner: Option<String>,
    /// What the server does about fields that it does not know.
    pub(crate) validation: Option<ValidationDirective>,
    /// An apply takes over the fields of others.
    pub(crate) force: bool,
}

/// The methods of a write that is about to be sent, by which it is told how; `$owner` documents that of the field owner.
macro_rules! write_options {
    () => {
        $crate::endpoint::write_options!(
            "Notes the fields that it changes as those of this owner (`fieldManager`). By default the server takes the client's user agent up to the first `/`."
        );
    };
    ($owner:literal) => {
        /// Asks the server what would come of it, and changes nothing: the answer is not in the cache either.
        pub fn dry_run(mut self) -> Self {
            self.options.dry_run = true;
            self
        }

        #[doc = $owner]
        pub fn field_owner(mut self, owner: impl Into<String>) -> Self {
            self.options.field_owner = Some(owner.into());
            self
        }

        /// What the server does about fields that the kind does not have, and about those that are there twice: it drops them and warns
        /// by default.
        pub fn validation(mut self, validation: kube::api::ValidationDirective) -> Self {
            self.options.validation = Some(validation);
            self
        }
    };
}
pub(crate) use write_options;

impl WriteOptions {
    fn of_post(&self) -> PostParams {
        PostParams { dry_run: self.dry_run, field_manager: self.field_owner.clone() }
    }

    fn of_patch(&self) -> PatchParams {
        PatchParams {
            dry_run: self.dry_run,
            force: self.force,
            field_manager: self.field_owner.clone(),
            field_validation: self.validation.clone(),
        }
    }

    /// A POST or PUT with the validation that is asked for: kube's parameters of these do not have it.
    fn validated(&self, request: BuiltRequest) -> BuiltRequest {
        let Some(validation) = &self.validation else { return request };
        let mut request = request?;
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let and = if query.is_empty() { "" } else { "&" };
        let uri = format!("{path}?{query}{and}fieldValidation={}", validation.as_str());
        let uri = uri.parse().map_err(|error: InvalidUri| request::Error::BuildRequest(error.into()))?;
        *request.uri_mut() = uri;
        Ok(request)
    }
}

impl<'a, K: Resource + DeserializeOwned> Endpoint<'a, K> {
    pub(crate) fn new(client: &'a Client, kind: &K::DynamicType, namespace: Option<&str>) -> Self {
        Self { client, request: Request::new(K::url_path(kind, namespace)), kind: PhantomData }
    }

    /// The object `name`, if it is there.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<K>> {
        match self.read(name).await.and_then(|text| decode(&text)) {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The object `name` as the server writes it; it has to be there.
    pub(crate) async fn read(&self, name: &str) -> Result<String> {
        Ok(send(self.client, self.got(name)).await?.0)
    }

    /// The object `name`, which has to be there, as the answer to a write of a part of it.
    pub(crate) async fn read_again(&self, name: &str) -> Result<ApiResponse<K>> {
        self.ask(self.got(name)).await
    }

    fn got(&self, name: &str) -> BuiltRequest {
        let params = GetParams::default();
        if K::metadata_api() {
            self.request.get_metadata(name, &params)
        } else {
            self.request.get(name, &params)
        }
    }

    /// The objects that are selected: one page of them, if `params` have a limit.
    pub(crate) async fn list(&self, params: &ListParams) -> Result<Page<K>> {
        let request =
            if K::metadata_api() { self.request.list_metadata(params) } else { self.request.list(params) };
        let (text, _) = send(self.client, request).await?;
        let List { metadata, items } = decode(&text)?;
        let objects = items.iter().flatten().map(|item| decode(item.get())).collect::<Result<_>>()?;
        Ok(Page { objects, rest: metadata.rest.filter(|rest| !rest.is_empty()) })
    }

    /// A part of the object `name` that is a kind of its own, such as `scale`.
    pub(crate) async fn read_part<P: DeserializeOwned>(&self, name: &str, part: &str) -> Result<P> {
        decode(&send(self.client, self.request.get_subresource(part, name)).await?.0)
    }

    /// Writes a part of the object `name` that is a kind of its own, and reads what is answered.
    pub(crate) async fn write_part<A: DeserializeOwned>(
        &self,
        name: &str,
        part: &str,
        options: &WriteOptions,
        action: Action<'_>,
    ) -> Result<A> {
        decode(&send(self.client, self.built(name, Some(part), options, action)).await?.0)
    }

    /// Does something to the object `name`, or to a part of it. An object that is created has its name in its body.
    pub(crate) async fn write(
        &self,
        name: &str,
        part: Option<&str>,
        options: &WriteOptions,
        action: Action<'_>,
    ) -> Result<ApiResponse<K>> {
        self.ask(self.built(name, part, options, action)).await
    }

    fn built(
        &self,
        name: &str,
        part: Option<&str>,
        options: &WriteOptions,
        action: Action<'_>,
    ) -> BuiltRequest {
        let (to, post) = (&self.request, options.of_post());
        match (action, part) {
            (Action::Create(body), None) => options.validated(to.create(&post, body.to_vec())),
            (Action::Create(body), Some(part)) => {
                options.validated(to.create_subresource(part, name, &post, body.to_vec()))
            }
            (Action::Replace(body), None) => options.validated(to.replace(name, &post, body.to_vec())),
            (Action::Replace(body), Some(part)) => {
                options.validated(to.replace_subresource(part, name, &post, body.to_vec()))
            }
            (Action::Patch(patch), None) => to.patch(name, &options.of_patch(), &patch),
            (Action::Patch(patch), Some(part)) => {
                to.patch_subresource(part, name, &options.of_patch(), &patch)
            }
        }
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deleted<K>> {
        let (answer, _) = send(self.client, self.request.delete(name, params)).await?;
        let TypeOnly { kind } = decode(&answer)?;
        if kind != "Status" {
            return decode(&answer).map(|object| Deleted::Object(Box::new(object)));
        }
        let status: Status = decode(&answer)?;
        let uid = status.details.map(|details| details.uid).filter(|uid| !uid.is_empty());
        Ok(Deleted::Gone { uid })
    }

    /// Deletes the objects that are selected.
    pub(crate) async fn delete_all(&self, params: &DeleteParams, selected: &ListParams) -> Result<()> {
        send(self.client, self.request.delete_collection(params, selected)).await.map(drop)
    }

    async fn ask(&self, request: BuiltRequest) -> Result<ApiResponse<K>> {
        let (text, status) = send(self.client, request).await?;
        let Raw { text, managed_fields, .. } = Raw::<false>::of(text).map_err(kube::Error::SerdeError)?;
        let is_new = status == StatusCode::CREATED;
        Ok(ApiResponse { object: decode(&text)?, text, managed_fields, is_new })
    }
}

/// What is done to an object, or to a part of it; bodies are JSON.
pub(crate) enum Action<'a> {
    /// Creates it: an object, or a part of one, such as `eviction`.
    Create(&'a [u8]),
    /// Replaces it.
    Replace(&'a [u8]),
    /// Changes it.
    Patch(Patch<&'a Value>),
}

/// A list, whose items are read one by one.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(rename = "continue")]
    rest: Option<String>,
}

/// What every answer begins with.
#[derive(Deserialize)]
struct TypeOnly {
    #[serde(default)]
    kind: String,
}

/// The text of the answer, whatever it is about, and its code. An answer that is an error is told as kube's `Client::request_text`
/// does it, which keeps the code to itself: that says whether an apply has made an object.
async fn send(client: &Client, request: BuiltRequest) -> Result<(String, StatusCode)> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    if !accesses::is_noted() {
        return exchange(client, request).await;
    }
    let right = Right::of(request.method(), request.uri());
    let answer = exchange(client, request).await;
    if let Some(right) = right {
        accesses::requested(right, answer.as_ref().map(|(text, _)| &**text));
    }
    answer
}

async fn exchange(client: &Client, request: http::Request<Vec<u8>>) -> Result<(String, StatusCode)> {
    let (head, body) = client.send(request.map(Body::from)).await?.into_parts();
    let text = String::from_utf8(body.collect().await?.to_bytes().into()).map_err(kube::Error::FromUtf8)?;
    if !head.status.is_client_error() && !head.status.is_server_error() {
        return Ok((text, head.status));
    }
    let status = serde_json::from_str::<Status>(&text).unwrap_or_else(|_| {
        // A proxy answers in its own words.
        Status::failure(text.trim(), "Failed to parse error data").with_code(head.status.as_u16())
    });
    Err(kube::Error::Api(status.boxed()))
}

/// An object as the body of a request.
pub(crate) fn encode(object: &impl Serialize) -> Result<Vec<u8>> {
    to_json(object).map_err(kube::Error::SerdeError)
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T> {
    from_json(text).map_err(kube::Error::SerdeError)
}
