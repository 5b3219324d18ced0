//! Whether an operator is alive, and whether it is ready: named checks, told as controller-runtime's `pkg/healthz` tells them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::StatusCode;
use parking_lot::RwLock;

use crate::BoxError;

type Check = Arc<dyn Fn() -> Result<(), BoxError> + Send + Sync>;

/// Named checks that all have to hold; clones share them. Without any there is one, `ping`, which does.
#[derive(Clone, Default)]
pub struct Checks(Arc<RwLock<BTreeMap<String, Check>>>);

/// Report of health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// 200 if all is well, 500 if not, 404 if there is no such check.
    pub status: StatusCode,
    /// For people.
    pub text: String,
}

impl Checks {
    /// Adds a check, or replaces the one of that name. It must not block.
    pub fn add<E: Into<BoxError>>(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) {
        self.0.write().insert(name.into(), Arc::new(move || check().map_err(Into::into)));
    }

    /// The answer to a request for all checks (an empty `path`) or for one of them (`/name`). Of the `query`, `verbose` lists
    /// them though all is well, and `exclude=name` leaves one out.
    #[must_use]
    pub fn report(&self, path: &str, query: &str) -> Report {
        match path.trim_matches('/') {
            "" => self.aggregate(query),
            name => self.one(name),
        }
    }

    fn one(&self, name: &str) -> Report {
        let checks = self.0.read();
        let check = checks.get(name).cloned();
        let is_default = checks.is_empty() && name == "ping";
        drop(checks);
        match check.map(|check| check()) {
            Some(Ok(())) => Report { status: StatusCode::OK, text: "ok".to_owned() },
            Some(Err(error)) => Report {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                text: format!("internal server error: {error}\n"),
            },
            None if is_default => Report { status: StatusCode::OK, text: "ok".to_owned() },
            None => Report { status: StatusCode::NOT_FOUND, text: "404 page not found\n".to_owned() },
        }
    }

    fn aggregate(&self, query: &str) -> Report {
        let mut checks = self.0.read().clone();
        if checks.is_empty() {
            checks.insert("ping".to_owned(), Arc::new(|| Ok(())));
        }
        let (mut text, mut failed) = (String::new(), Vec::new());
        let (verbose, mut excluded) = options(query);
        for (name, check) in &checks {
            let was_excluded = excluded.iter().any(|other| other == name);
            if was_excluded {
                excluded.retain(|other| other != name);
                text += &format!("[+]{name} excluded: ok\n");
                continue;
            }
            match check() {
                Ok(()) => text += &format!("[+]{name} ok\n"),
                Err(error) => {
                    // Everybody may ask this; who may ask for the one check is told the reason.
                    text += &format!("[-]{name} failed: reason withheld\n");
                    failed.push(format!("{name}: {error}"));
                }
            }
        }
        if failed.is_empty() && !verbose {
            return Report { status: StatusCode::OK, text: "ok".to_owned() };
        }
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            text += "warn: some health checks cannot be excluded: no matches for ";
            text += &(names.join(",") + "\n");
        }
        if failed.is_empty() {
            return Report { status: StatusCode::OK, text: text + "healthz check passed\n" };
        }
        tracing::info!(failed = failed.join("; "), "health check failed");
        Report { status: StatusCode::INTERNAL_SERVER_ERROR, text: text + "healthz check failed\n" }
    }
}

/// Whether a query asks for all checks to be listed, and which it excludes.
fn options(query: &str) -> (bool, Vec<String>) {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let verbose = pairs.iter().any(|(name, _)| name == "verbose");
    let mut excluded: Vec<String> =
        pairs.iter().filter(|(name, _)| name == "exclude").map(|(_, value)| value.to_string()).collect();
    excluded.sort();
    excluded.dedup();
    (verbose, excluded)
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Checks {
        let checks = Checks::default();
        checks.add("ping", || Ok::<_, BoxError>(()));
        checks.add("database", || Err("no route"));
        checks
    }

    fn read(checks: &Checks, path: &str, query: &str) -> (u16, String) {
        let report = checks.report(path, query);
        (report.status.as_u16(), report.text)
    }

    #[test]
    fn without_checks_there_is_ping() {
        let none = Checks::default();
        assert_eq!(read(&none, "", ""), (200, "ok".to_owned()));
        assert_eq!(read(&none, "/ping", ""), (200, "ok".to_owned()));
        assert_eq!(read(&none, "", "verbose"), (200, "[+]ping ok\nhealthz check passed\n".to_owned()));
        assert_eq!(read(&none, "/other", ""), (404, "404 page not found\n".to_owned()));
    }

    #[test]
    fn a_failure_lists_all_and_keeps_its_reason_from_those_who_ask_for_all() {
        let failed = "[-]database failed: reason withheld\n[+]ping ok\nhealthz check failed\n";
        assert_eq!(read(&checks(), "/", ""), (500, failed.to_owned()));
        let reason = "internal server error: no route\n";
        assert_eq!(read(&checks(), "/database", ""), (500, reason.to_owned()));
    }

    #[test]
    fn what_is_excluded_is_not_asked_and_a_name_that_is_unknown_is_told() {
        let passed = "[+]database excluded: ok\n[+]ping ok\nhealthz check passed\n";
        assert_eq!(read(&checks(), "", "verbose&exclude=database"), (200, passed.to_owned()));
        assert_eq!(read(&checks(), "", "exclude=database"), (200, "ok".to_owned()));
        let unknown = "[+]database excluded: ok\n[+]ping ok\n\
                       warn: some health checks cannot be excluded: no matches for \"x\"\nhealthz check passed\n";
        assert_eq!(read(&checks(), "", "verbose=1&exclude=database&exclude=x"), (200, unknown.to_owned()));
    }
}
