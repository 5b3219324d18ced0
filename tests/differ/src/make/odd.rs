//! What is no proper request.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::json;

use super::Making;
use crate::conversation::{Ask, Payload};

impl Making<'_> {
    /// What is no proper request.
    pub(super) fn odd(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let text = |what: &str, method, named: bool, media: &str, text: &str| {
            let mut ask = Ask::new(what, method, &place).header("Content-Type", media);
            ask.named = named;
            ask.payload = Payload::Text(text.to_owned());
            ask
        };
        let object = self.known[at].object.clone();
        let mut ask = match self.rng.random_range(0..12) {
            0 => text("odd/json", "POST", false, "application/json", "{"),
            1 => text("odd/empty", "POST", false, "application/json", ""),
            2 => text("odd/media", "POST", false, "text/plain", "x"),
            3 => text(
                "odd/kind",
                "POST",
                false,
                "application/json",
                r#"{"apiVersion":"v1","kind":"Other","metadata":{"name":"a"}}"#,
            ),
            4 => text("odd/list", "PUT", true, "application/json", "[]"),
            5 => text("odd/patch", "PATCH", true, "application/json-patch+json", r#"{"op":"add"}"#),
            6 => text("odd/patch", "PATCH", true, "application/merge-patch+json", "[1]"),
            7 => text("odd/patch", "PATCH", true, "application/json", "{}"),
            8 => text("odd/yaml", "POST", false, "application/yaml", "a: [b"),
            9 => text(
                "odd/patch",
                "PATCH",
                true,
                "application/json-patch+json",
                r#"[{"op":"remove","path":"/nowhere"}]"#,
            ),
            10 => {
                let body = object.to_string().replacen(
                    "\"metadata\":{",
                    "\"metadata\":{\"labels\":{\"d\":\"1\"},\"labels\":{\"d\":\"2\"},",
                    1,
                );
                text("odd/twice", "POST", false, "application/json", &body)
            }
            _ => text("odd/post", "POST", true, "application/json", &object.to_string()),
        };
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("fieldValidation", "Strict");
        }
        self.asks.push(ask);
    }

    /// A method where it does not belong, or a path that leads nowhere.
    pub(super) fn wrong(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let object = self.known[at].object.clone();
        let mut ask = match self.rng.random_range(0..12) {
            0 => Ask::new("wrong/head", "HEAD", &place),
            1 => Ask::new("wrong/head", "HEAD", &place).collection(),
            2 => Ask::new("wrong/options", "OPTIONS", &place),
            3 => Ask::new("wrong/options", "OPTIONS", &place).collection(),
            4 => Ask::new("wrong/put", "PUT", &place).collection().body(object),
            5 => Ask::new("wrong/patch", "PATCH", &place)
                .collection()
                .header("Content-Type", "application/merge-patch+json")
                .body(json!({"metadata": {"labels": {"a": "b"}}})),
            6 => Ask::new("wrong/delete", "DELETE", &place).subresource(
                ["status", "scale", "nothing", "log"].choose(&mut self.rng).unwrap_or(&"status"),
            ),
            7 => Ask::new("wrong/post", "POST", &place)
                .subresource(["status", "scale", "nothing", "log"].choose(&mut self.rng).unwrap_or(&"status"))
                .body(object),
            8 => Ask::new("wrong/get", "GET", &place).subresource(
                ["nothing", "eviction", "binding", "token", "approval", "finalize", "scale"]
                    .choose(&mut self.rng)
                    .unwrap_or(&"x"),
            ),
            9 => Ask::new("wrong/trace", "TRACE", &place),
            10 => Ask::new("wrong/apply", "PATCH", &place)
                .header(
                    "Content-Type",
                    *[
                        "application/apply-patch+cbor",
                        "application/apply-patch+json",
                        "application/apply-patch+yaml; charset=utf-8",
                        "application/strategic-merge-patch+json;x=y",
                    ]
                    .choose(&mut self.rng)
                    .unwrap_or(&"x"),
                )
                .query("fieldManager", "m1")
                .body(object),
            _ => {
                let mut place = place;
                place.resource.version =
                    (*["v9", "v1beta1", "v1alpha1"].choose(&mut self.rng).unwrap_or(&"v9")).to_owned();
                Ask::new("wrong/version", "GET", &place)
            }
        };
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        }
        self.asks.push(ask);
    }

    /// Options of writes in any combination, with the wrong ones for what is done.
    pub(super) fn options(&mut self, at: usize) {
        let before = self.asks.len();
        match self.rng.random_range(0..5) {
            0 => self.create(at, false),
            1 => self.put(at),
            2 => self.patch(at),
            3 => self.apply(at),
            _ => self.delete(at),
        }
        let dry = self.known[at].dry;
        let options: [(&str, &[&str]); 6] = [
            ("force", &["true", "false", "maybe", ""]),
            ("fieldManager", &["m1", "", "a b", "x/y", LONG, "ü"]),
            ("fieldValidation", &["Strict", "strict", "Warn", ""]),
            ("dryRun", &["All", "all", ""]),
            ("pretty", &["true", "false", "maybe"]),
            ("orphanDependents", &["true", "false"]),
        ];
        for (name, values) in options {
            if !self.rng.random_bool(0.35) || (dry && name == "dryRun") {
                continue;
            }
            let value = *values.choose(&mut self.rng).unwrap_or(&"");
            for ask in &mut self.asks[before..] {
                ask.query.retain(|(key, _)| key != name);
                ask.query.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

/// Longer than a manager's name may be.
const LONG: &str = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";
