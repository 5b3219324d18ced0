//! Panics of tasks: tokio keeps them in the task's handle, where nobody looks.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// What has panicked on this thread since a test began on it.
    static NOTED: RefCell<Option<Panics>> = const { RefCell::new(None) };
}

struct Panics {
    printed: bool,
    panics: Vec<String>,
}

/// The panics of this thread, as long as it is held.
pub(crate) struct Noted(());

/// Notes the panics of this thread from now on; `told`: and tells of them as usual. A test has its thread to itself, and a simulated world has no other.
pub(crate) fn note(printed: bool) -> Noted {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let printed = NOTED.with_borrow_mut(|noted| {
                noted.as_mut().is_none_or(|noted| {
                    noted.panics.push(info.to_string());
                    noted.printed
                })
            });
            if printed {
                before(info);
            }
        }));
    });
    NOTED.set(Some(Panics { printed, panics: Vec::new() }));
    Noted(())
}

impl Noted {
    /// What has panicked.
    pub(crate) fn taken(self) -> Vec<String> {
        NOTED.take().map(|noted| noted.panics).unwrap_or_default()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        NOTED.set(None);
    }
}
