//! The engine as admission sees it. What writes is a write within a write: its future has a type that can be told.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_codec::body::Decoded;
use kubewright_identity::authz::Rights;
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_kinds::built_in::core::resource_quota::RESOURCE_QUOTA;
use kubewright_kinds::{Kind, Kinds, Summary};
use kubewright_meta::ApiError;
use kubewright_store::Snapshot;
use kubewright_world::World;
use serde_json::{Value, json};

use super::{Part, create};
use crate::admission::{Admission, Edit, Objects};
use crate::engine::{Engine, MANAGER, SERVER, convert};
use crate::request::{Call, WriteOptions};

impl Objects for Engine {
    fn snapshot(&self) -> Snapshot<Summary> {
        Self::snapshot(self)
    }

    fn kinds(&self) -> Arc<Kinds> {
        Self::kinds(self)
    }

    fn rights(&self) -> Rights {
        self.authorizer().rights(&Self::snapshot(self))
    }

    fn world(&self) -> &World {
        Self::world(self)
    }

    fn admission(&self) -> &Admission {
        Self::admission(self)
    }

    fn in_version<'a>(
        &'a self,
        kind: &'a Kind,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(convert::in_version(self, kind, object))
    }

    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let Some(kind) = Self::kinds(self).find(&NAMESPACE).cloned() else { return Ok(()) };
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
            let call = Call { kind: &kind, namespace: "", name: "", user: &SERVER };
            create::create(self, call, Decoded::of(namespace), options).await.map(drop)
        })
    }

    fn edit_quota<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        edit: &'a Edit<'a>,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let Some(kind) = Self::kinds(self).find(&RESOURCE_QUOTA).cloned() else { return Ok(()) };
            let call = Call { kind: &kind, namespace, name, user: &SERVER };
            super::edit::edit_as(self, call, Part::Status, MANAGER, edit).await.map(drop)
        })
    }
}
