//! The queue with workers that wait.

use std::{sync::Arc, time::Duration};

use tokio::{task::yield_now, time::Instant};

use super::Workqueue;

/// Whether `queue` gives nothing now.
async fn is_idle(queue: &Workqueue<u32>) -> bool {
    tokio::time::timeout(Duration::ZERO, queue.get()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_added_twice_comes_out_once() {
    let queue = Workqueue::new();
    queue.add(1);
    queue.add(2);
    queue.add(1);
    assert_eq!((queue.get().await, queue.get().await), (Some(1), Some(2)));
    assert!(is_idle(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_added_while_it_is_worked_on_comes_again_when_that_is_done() {
    let queue = Workqueue::new();
    queue.add(1);
    assert_eq!(queue.get().await, Some(1));
    queue.add(1);
    assert!(is_idle(&queue).await);
    queue.done(&1);
    assert_eq!(queue.get().await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_out_at_its_time() {
    let queue = Workqueue::new();
    let start = Instant::now();
    queue.add_after(2, Duration::from_secs(3600));
    queue.add_after(1, Duration::from_secs(60));
    assert_eq!((queue.get().await, start.elapsed()), (Some(1), Duration::from_secs(60)));
    assert_eq!((queue.get().await, start.elapsed()), (Some(2), Duration::from_secs(3600)));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_worked_on_before_its_time_is_not_repeated_at_its_time() {
    let queue = Workqueue::new();
    queue.add_after(1, Duration::from_secs(60));
    queue.add(1);
    assert_eq!(queue.get().await, Some(1));
    queue.done(&1);
    assert!(tokio::time::timeout(Duration::from_secs(120), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_clock_never_comes_and_breaks_nothing() {
    let queue = Workqueue::new();
    queue.add_after(1, Duration::MAX);
    assert!(tokio::time::timeout(Duration::from_secs(1_000_000), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_addition_wakes_a_worker_that_waits_for_a_later_one() {
    let queue = Arc::new(Workqueue::new());
    let start = Instant::now();
    queue.add_after(1, Duration::from_secs(60));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add(2);
    assert_eq!(worker.await.ok(), Some(Some(2)));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn additions_in_one_go_wake_as_many_workers() {
    let queue = Arc::new(Workqueue::new());
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move { queue.get().await })
    };
    let workers = [worker(), worker(), worker()];
    yield_now().await;
    (1..=3).for_each(|key| queue.add(key));
    let mut got = Vec::new();
    for worker in workers {
        got.push(
            tokio::time::timeout(Duration::from_secs(1), worker).await.ok().and_then(Result::ok).flatten(),
        );
    }
    assert_eq!(got, [Some(1), Some(2), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_shut_down_queue_gives_what_is_due_and_then_ends() {
    let queue = Workqueue::new();
    queue.add(1);
    queue.add_after(2, Duration::from_secs(1));
    queue.shut_down();
    queue.add(3);
    assert_eq!(queue.get().await, Some(1));
    queue.done(&1);
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_ends_when_the_last_key_is_done() {
    let queue = Arc::new(Workqueue::new());
    queue.add(1);
    assert_eq!(queue.get().await, Some(1));
    queue.add(1);
    queue.shut_down();
    let worker = || {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut keys = 0;
            while let Some(key) = queue.get().await {
                keys += 1;
                queue.done(&key);
            }
            keys
        })
    };
    let workers = [worker(), worker()];
    yield_now().await;
    queue.done(&1);
    let mut keys = 0;
    for worker in workers {
        keys += tokio::time::timeout(Duration::from_secs(1), worker)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(100);
    }
    assert_eq!(keys, 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_has_work_when_nothing_is_due_or_worked_on_or_tried_again_soon() {
    let (queue, minute) = (Workqueue::new(), Duration::from_secs(60));
    assert!(queue.is_idle(minute));
    queue.add(1);
    assert!(!queue.is_idle(minute), "it is due");
    assert_eq!(queue.get().await, Some(1));
    assert!(!queue.is_idle(minute), "it is worked on");
    queue.add_after_failure(1);
    queue.done(&1);
    assert!(!queue.is_idle(minute), "it is tried again");
    assert!(queue.is_idle(Duration::ZERO), "but not yet");
    assert_eq!(queue.get().await, Some(1));
    queue.forget(&1);
    queue.add_after(1, minute);
    queue.done(&1);
    assert!(queue.is_idle(minute), "what is planned for later is no work before its time");
    tokio::time::sleep(minute).await;
    assert!(!queue.is_idle(Duration::ZERO), "its time has come");
}
