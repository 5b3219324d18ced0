//! What is logged, which can be changed while a program runs.

use std::fmt;

use parking_lot::Mutex;
use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, reload};

/// How long a level may be, in bytes.
const LONGEST: usize = 4096;

/// What of the logs is written.
pub(crate) struct LogLevel {
    told: Mutex<String>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl LogLevel {
    /// A filter by this level, and what changes it.
    ///
    /// # Errors
    /// When the level is none.
    pub(crate) fn new<S: Subscriber + 'static>(
        level: &str,
    ) -> Result<(reload::Layer<EnvFilter, S>, Self), String> {
        let (filter, handle) = reload::Layer::new(parse(level)?);
        let reload = Box::new(move |filter| handle.reload(filter));
        Ok((filter, Self { told: Mutex::new(level.to_owned()), reload }))
    }

    /// The level as it was told.
    pub(crate) fn get(&self) -> String {
        self.told.lock().clone()
    }

    /// Logs by this level from now on.
    ///
    /// # Errors
    /// When the level is none.
    pub(crate) fn set(&self, level: &str) -> Result<(), String> {
        let filter = parse(level)?;
        let mut told = self.told.lock();
        (self.reload)(filter).map_err(|error| error.to_string())?;
        level.clone_into(&mut told);
        Ok(())
    }
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLevel").field(&self.get()).finish()
    }
}

fn parse(level: &str) -> Result<EnvFilter, String> {
    if level.len() > LONGEST {
        return Err(format!("the log level is longer than {LONGEST} bytes"));
    }
    let filter = EnvFilter::try_new(level).map_err(|error| format!("the log level {level:?}: {error}"))?;
    if level.contains("kube_client") {
        return Ok(filter);
    }
    // It logs each request that fails, as an error, beside us who say it once.
    let quiet = "kube_client::client::builder=off".parse().map_err(|error| format!("{error}"))?;
    Ok(filter.add_directive(quiet))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tracing_subscriber::{Layer, Registry, layer::SubscriberExt};

    use super::*;

    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_level_holds_from_when_it_is_set() {
        let count = Arc::new(AtomicUsize::new(0));
        let (filter, level) = LogLevel::new("warn").expect("a level");
        let logs = Registry::default().with(Count(count.clone()).with_filter(filter));
        let logged = || {
            tracing::debug!("low");
            count.swap(0, Ordering::SeqCst)
        };
        tracing::subscriber::with_default(logs, || {
            assert_eq!((logged(), level.get().as_str()), (0, "warn"));
            level.set("info,kubewright_runtime=debug").expect("a level");
            assert_eq!((logged(), level.get().as_str()), (1, "info,kubewright_runtime=debug"));
            assert!(
                level.set("kube=loud").is_err_and(|error| error.starts_with("the log level \"kube=loud\": "))
            );
            assert!(level.set(&"a".repeat(5000)).is_err());
            assert_eq!(logged(), 1, "what is none changes nothing");
            level.set("off").expect("a level");
            assert_eq!(logged(), 0);
        });
    }
}
