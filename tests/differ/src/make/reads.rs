//! Requests that read: objects, lists and their pages, watches.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::Making;
use crate::conversation::Ask;

impl Making<'_> {
    pub(super) fn get(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("get", "GET", &place);
        if let Some(name) = self.subresource(at) {
            ask.what = format!("get/{name}");
            ask = ask.subresource(&name);
        }
        if self.rng.random_bool(0.15) {
            ask = ask.query(
                "resourceVersion",
                *["0", "abc", "1", "999999999"].choose(&mut self.rng).unwrap_or(&"0"),
            );
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    pub(super) fn list(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("list", "GET", &place).collection();
        if !place.resource.namespaced && !place.resource.group.contains("@run@") {
            // Others make objects of this kind meanwhile.
            let ask = self.with_accept(ask.query("fieldSelector", "metadata.name=@run@-a"));
            self.asks.push(ask);
            return;
        }
        if self.rng.random_bool(0.2) {
            ask = ask.query("limit", *["1", "2", "0", "-1", "x"].choose(&mut self.rng).unwrap_or(&"1"));
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query(
                "labelSelector",
                *["a=b", "a", "!a", "a in (b,c)", "a!=b", "app=x", "a==", "=", "a notin (b)"]
                    .choose(&mut self.rng)
                    .unwrap_or(&"a"),
            );
        }
        if self.rng.random_bool(0.3) {
            let name = if place.resource.namespaced { "a" } else { "@run@-a" };
            let selector = [
                "metadata.name=NAME",
                "metadata.name!=NAME",
                "metadata.namespace=@ns@",
                "spec.nodeName=",
                "status.phase=Running",
                "type=Opaque",
                "a=b",
                "metadata.name",
                "spec.unschedulable=false",
                "involvedObject.kind=Pod",
                "spec.replicas=1",
                "metadata.name=NAME,metadata.namespace=x",
            ];
            ask = ask.query(
                "fieldSelector",
                selector.choose(&mut self.rng).unwrap_or(&"a=b").replace("NAME", name),
            );
        }
        if self.rng.random_bool(0.15) {
            ask = ask.query("resourceVersion", *["0", "@list@", "abc"].choose(&mut self.rng).unwrap_or(&"0"));
            if self.rng.random_bool(0.5) {
                ask = ask.query(
                    "resourceVersionMatch",
                    *["NotOlderThan", "Exact", "Bad"].choose(&mut self.rng).unwrap_or(&"Exact"),
                );
            }
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    pub(super) fn watch(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("watch", "GET", &place).collection().query("watch", "true");
        ask.stream = true;
        if !place.resource.namespaced && !place.resource.group.contains("@run@") {
            ask = ask.query("fieldSelector", "metadata.name=@run@-a");
        } else if self.rng.random_bool(0.2) {
            ask = ask.query("fieldSelector", "metadata.name=a");
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("resourceVersion", "0");
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query("labelSelector", *["a=b", "!a", "a"].choose(&mut self.rng).unwrap_or(&"a"));
        }
        if self.rng.random_bool(0.2) {
            ask = ask
                .query("sendInitialEvents", "true")
                .query("resourceVersionMatch", "NotOlderThan")
                .query("allowWatchBookmarks", "true");
        }
        if self.rng.random_bool(0.15) {
            ask = ask.header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        } else if self.rng.random_bool(0.15) {
            ask = ask.header("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        }
        self.asks.push(ask);
    }

    /// Pages of a list, with writes between them.
    pub(super) fn pages(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        if !place.resource.namespaced {
            return;
        }
        if !self.known[at].dry && self.rng.random_bool(0.7) {
            for name in ["a1", "a2", "z9"] {
                let mut object = self.known[at].object.clone();
                super::rename(&mut object, name);
                self.asks.push(Ask::new("create", "POST", &place).collection().body(object));
            }
        }
        let selector =
            *[None, None, Some("a=b"), Some("!a"), Some("a")].choose(&mut self.rng).unwrap_or(&None);
        let limit = *["1", "2", "3"].choose(&mut self.rng).unwrap_or(&"1");
        let mut first = Ask::new("list/page", "GET", &place).collection().query("limit", limit);
        if let Some(selector) = selector {
            first = first.query("labelSelector", selector);
        }
        if self.rng.random_bool(0.2) {
            first = first.query("resourceVersion", *["0", "@list@"].choose(&mut self.rng).unwrap_or(&"0"));
            if self.rng.random_bool(0.5) {
                first = first.query(
                    "resourceVersionMatch",
                    *["NotOlderThan", "Exact"].choose(&mut self.rng).unwrap_or(&"Exact"),
                );
            }
        }
        self.asks.push(first);
        for _ in 0..self.rng.random_range(1..4) {
            if self.rng.random_bool(0.4) {
                match self.rng.random_range(0..3) {
                    0 => self.create(at, false),
                    1 => self.delete(at),
                    _ => self.put(at),
                }
            }
            let mut next = Ask::new("list/page", "GET", &place).collection();
            if self.rng.random_bool(0.9) {
                next = next.query("limit", limit);
            }
            next = next.query("continue", if self.rng.random_bool(0.93) { "@continue@" } else { "bad" });
            if let Some(selector) = selector.filter(|_| self.rng.random_bool(0.9)) {
                next = next.query("labelSelector", selector);
            }
            if self.rng.random_bool(0.1) {
                next = next.query("resourceVersion", *["0", "@list@"].choose(&mut self.rng).unwrap_or(&"0"));
            }
            if self.rng.random_bool(0.05) {
                next = next.query("resourceVersionMatch", "Exact");
            }
            self.asks.push(next);
        }
    }

    /// A list or a watch with options that speak of revisions, in any combination.
    pub(super) fn revisions(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        if !place.resource.namespaced {
            return;
        }
        let watch = self.rng.random_bool(0.5);
        let mut ask =
            Ask::new(if watch { "watch/revision" } else { "list/revision" }, "GET", &place).collection();
        if watch {
            ask = ask.query("watch", *["true", "1", "true", "yes"].choose(&mut self.rng).unwrap_or(&"true"));
            ask.stream = true;
        }
        if self.rng.random_bool(0.7) {
            // Not the first revision: whether it is compacted already is a matter of time.
            let revision = ["", "0", "@list@", "@rv@", "abc", "-1", "1x"];
            ask = ask.query("resourceVersion", *revision.choose(&mut self.rng).unwrap_or(&"0"));
        }
        if self.rng.random_bool(0.5) {
            let how = ["NotOlderThan", "Exact", "NotOlderThan", "", "Bad"];
            ask = ask.query("resourceVersionMatch", *how.choose(&mut self.rng).unwrap_or(&"Exact"));
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query("limit", *["1", "2", "500"].choose(&mut self.rng).unwrap_or(&"1"));
        }
        if self.rng.random_bool(if watch { 0.5 } else { 0.1 }) {
            ask = ask.query(
                "sendInitialEvents",
                *["true", "true", "false", "maybe"].choose(&mut self.rng).unwrap_or(&"true"),
            );
        }
        if self.rng.random_bool(if watch { 0.5 } else { 0.05 }) {
            ask = ask.query(
                "allowWatchBookmarks",
                *["true", "true", "false"].choose(&mut self.rng).unwrap_or(&"true"),
            );
        }
        if self.rng.random_bool(0.1) {
            ask =
                ask.query("timeoutSeconds", *["30", "-1", "x", "60"].choose(&mut self.rng).unwrap_or(&"30"));
        }
        if self.rng.random_bool(0.3) {
            ask = ask
                .query("labelSelector", *["a=b", "!a", "a in (b,c)"].choose(&mut self.rng).unwrap_or(&"a"));
        }
        if self.rng.random_bool(0.2) {
            ask = ask.query(
                "fieldSelector",
                *["metadata.name=a", "metadata.name!=a", "bad=a"].choose(&mut self.rng).unwrap_or(&"a"),
            );
        }
        let ask = if watch {
            match self.rng.random_range(0..6) {
                0 => ask.header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
                1 => ask.header("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
                _ => ask,
            }
        } else {
            self.with_accept(ask)
        };
        self.asks.push(ask);
    }
}
