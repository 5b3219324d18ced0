//! Requests on the objects of a kind in a namespace, whatever the kind's scope.
//!
//! kube's `Api` wants to know at compile time whether a kind is namespaced; generic code does not.

use std::marker::PhantomData;

use kube::{
    Client, Resource,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Request},
    core::{Status, request},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::object::{from_json, to_json};

type Result<T> = std::result::Result<T, kube::Error>;

pub(crate) struct Endpoint<'a, K> {
    client: &'a Client,
    request: Request,
    kind: PhantomData<fn() -> K>,
}

/// What the server answered to a read or a write.
pub(crate) struct ApiResponse<K> {
    pub(crate) object: K,
    /// The object as the server wrote it.
    pub(crate) text: String,
}

/// What the server answered to a deletion.
pub(crate) enum Deleted<K> {
    /// The object, as it was or as it is now.
    Object(Box<K>),
    /// That it is gone, with its uid if the answer has it.
    Gone { uid: Option<String> },
}

impl<'a, K: Resource + DeserializeOwned> Endpoint<'a, K> {
    pub(crate) fn new(client: &'a Client, kind: &K::DynamicType, namespace: Option<&str>) -> Self {
        Self { client, request: Request::new(K::url_path(kind, namespace)), kind: PhantomData }
    }

    /// The object `name`, if it is there.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<K>> {
        match self.read(name).await {
            Ok(answer) => Ok(Some(answer.object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The object `name`, which has to be there.
    pub(crate) async fn read(&self, name: &str) -> Result<ApiResponse<K>> {
        let params = GetParams::default();
        let request = if K::metadata_api() {
            self.request.get_metadata(name, &params)
        } else {
            self.request.get(name, &params)
        };
        self.ask(request).await
    }

    /// A part of the object `name` that is a kind of its own, such as `scale`.
    pub(crate) async fn read_part<P: DeserializeOwned>(&self, name: &str, part: &str) -> Result<P> {
        decode(&send(self.client, self.request.get_subresource(part, name)).await?)
    }

    pub(crate) async fn patch_part<P: DeserializeOwned>(
        &self,
        name: &str,
        part: &str,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<P> {
        decode(&send(self.client, self.request.patch_subresource(part, name, params, patch)).await?)
    }

    /// Creates the object that is written in JSON.
    pub(crate) async fn create(&self, body: Vec<u8>) -> Result<ApiResponse<K>> {
        self.ask(self.request.create(&PostParams::default(), body)).await
    }

    /// Replaces the object `name`, or a part of it, by that which is written in JSON.
    pub(crate) async fn replace(
        &self,
        name: &str,
        subresource: Option<&str>,
        body: Vec<u8>,
    ) -> Result<ApiResponse<K>> {
        let params = PostParams::default();
        let request = match subresource {
            None => self.request.replace(name, &params, body),
            Some(subresource) => self.request.replace_subresource(subresource, name, &params, body),
        };
        self.ask(request).await
    }

    pub(crate) async fn patch(
        &self,
        name: &str,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<ApiResponse<K>> {
        let request = match subresource {
            None => self.request.patch(name, params, patch),
            Some(subresource) => self.request.patch_subresource(subresource, name, params, patch),
        };
        self.ask(request).await
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deleted<K>> {
        let answer = send(self.client, self.request.delete(name, params)).await?;
        let TypeOnly { kind } = decode(&answer)?;
        if kind != "Status" {
            return decode(&answer).map(|object| Deleted::Object(Box::new(object)));
        }
        let status: Status = decode(&answer)?;
        let uid = status.details.map(|details| details.uid).filter(|uid| !uid.is_empty());
        Ok(Deleted::Gone { uid })
    }

    async fn ask(
        &self,
        request: std::result::Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<ApiResponse<K>> {
        let text = send(self.client, request).await?;
        Ok(ApiResponse { object: decode(&text)?, text })
    }
}

/// What every answer begins with.
#[derive(Deserialize)]
struct TypeOnly {
    #[serde(default)]
    kind: String,
}

/// The text of the answer, whatever it is about.
async fn send(
    client: &Client,
    request: std::result::Result<http::Request<Vec<u8>>, request::Error>,
) -> Result<String> {
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await
}

/// An object as the body of a request.
pub(crate) fn encode(object: &impl Serialize) -> Result<Vec<u8>> {
    to_json(object).map_err(kube::Error::SerdeError)
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T> {
    from_json(text).map_err(kube::Error::SerdeError)
}
