//! Requests that delete: an object, or many.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::json;

use super::Making;
use crate::conversation::Ask;

impl Making<'_> {
    pub(super) fn delete(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("delete", "DELETE", &place);
        match self.rng.random_range(0..8) {
            0 => ask = ask.query("propagationPolicy", *["Foreground", "Orphan", "Background", "Bad"].choose(&mut self.rng).unwrap_or(&"Bad")),
            1 => ask = ask.query("gracePeriodSeconds", *["0", "5", "-1", "x"].choose(&mut self.rng).unwrap_or(&"0")),
            2 => ask = ask.body(json!({"preconditions": {"uid": *["@uid@", "wrong"].choose(&mut self.rng).unwrap_or(&"wrong")}})),
            3 => ask = ask.body(json!({"preconditions": {"resourceVersion": *["@rv@", "1"].choose(&mut self.rng).unwrap_or(&"1")}})),
            4 => ask = ask.body(json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "gracePeriodSeconds": 3})),
            5 => ask = ask.query("orphanDependents", "true"),
            _ => {}
        }
        if self.known[at].dry || self.rng.random_bool(0.1) {
            ask = ask.query("dryRun", "All");
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    pub(super) fn delete_collection(&mut self, at: usize) {
        if !self.known[at].place.resource.namespaced {
            return;
        }
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("deletecollection", "DELETE", &place).collection();
        if self.rng.random_bool(0.7) {
            ask = ask.query("labelSelector", *["a=b", "a", "app=x"].choose(&mut self.rng).unwrap_or(&"a"));
        }
        if self.rng.random_bool(0.15) {
            ask = ask.query(
                "fieldSelector",
                *["metadata.name=a", "metadata.name!=a", "bad=a", "metadata.namespace=@ns@"]
                    .choose(&mut self.rng)
                    .unwrap_or(&"a"),
            );
        }
        match self.rng.random_range(0..12) {
            0 => ask = ask.query("propagationPolicy", *["Foreground", "Orphan", "Background", "Bad"].choose(&mut self.rng).unwrap_or(&"Bad")),
            1 => ask = ask.query("gracePeriodSeconds", *["0", "5", "-1", "x"].choose(&mut self.rng).unwrap_or(&"0")),
            2 => ask = ask.body(json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})),
            3 => ask = ask.body(json!({"preconditions": {"uid": *["@uid@", "11111111-2222-3333-4444-555555555555"].choose(&mut self.rng).unwrap_or(&"x")}})),
            4 => ask = ask.body(json!({"dryRun": ["All"]})),
            5 => ask = ask.query("limit", *["1", "-1"].choose(&mut self.rng).unwrap_or(&"1")),
            6 => ask = ask.query("resourceVersion", *["0", "@list@", "abc"].choose(&mut self.rng).unwrap_or(&"0")),
            7 => ask = ask.body(json!({"kind": *["Other", "Pod", "DeleteOptions"].choose(&mut self.rng).unwrap_or(&"x"), "apiVersion": *["v1", "v2", "meta.k8s.io/v1"].choose(&mut self.rng).unwrap_or(&"v1")})),
            _ => {}
        }
        if self.known[at].dry || self.rng.random_bool(0.3) {
            ask = ask.query("dryRun", "All");
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }
}
