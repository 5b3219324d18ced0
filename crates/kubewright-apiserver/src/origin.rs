//! Origin of a request: what whoever hands it to the API server wants to find again wherever the work on it goes on, be that on
//! another task. The store that notes who wrote what finds it so.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

tokio::task_local! {
    static ORIGIN: Arc<dyn Any + Send + Sync>;
}

/// Works on a request of this origin.
pub fn within<F: Future>(origin: Arc<dyn Any + Send + Sync>, work: F) -> impl Future<Output = F::Output> {
    ORIGIN.scope(origin, work)
}

/// The origin of the request that is worked on; none where nobody has said it, or something else.
#[must_use]
pub fn of_work<T: Send + Sync + 'static>() -> Option<Arc<T>> {
    ORIGIN.try_with(|origin| Arc::clone(origin).downcast().ok()).ok().flatten()
}

/// Work that a task of its own does for the request of the task that asks for it.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let origin = ORIGIN.try_with(Arc::clone).ok();
    async move {
        match origin {
            Some(origin) => within(origin, work).await,
            None => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_of_its_own_knows_the_origin_of_the_request_that_it_works_for() {
        let asks = async || tokio::spawn(carried(async { of_work::<u8>().map(|origin| *origin) })).await;
        let found = within(Arc::new(7_u8), asks()).await.expect("the task ends");
        assert_eq!(found, Some(7));
        assert_eq!(asks().await.expect("the task ends"), None);
    }
}
