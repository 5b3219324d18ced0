//! How long a connection lasts on which nothing happens, and how it is noticed that a client has gone.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// A connection on which no data has been sent for so long is ended (`streamingConnectionIdleTimeout` of kubelets).
const IDLE: Duration = Duration::from_secs(4 * 60 * 60);
/// So often a silent client is asked whether it is there: what it has sent before it left may not have been read yet, so
/// the end of its connection has not been seen.
pub(super) const ASK: Duration = Duration::from_secs(30);
/// So long is waited for a client to say farewell, once all is sent: a connection that is closed before its client has read
/// all may lose what is under way.
pub(in super::super) const FAREWELL: Duration = Duration::from_secs(5);

/// Whether data is sent on a connection.
#[derive(Debug, Default)]
pub(super) struct Activity(Notify);

impl Activity {
    /// Some was.
    pub(super) fn seen(&self) {
        self.0.notify_one();
    }

    /// Ends when none was for too long.
    pub(super) async fn ceased(&self) {
        while timeout(IDLE, self.0.notified()).await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_four_hours_after_the_last_data() {
        let activity = Activity::default();
        let start = tokio::time::Instant::now();
        let busy = async {
            tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
            activity.seen();
        };
        tokio::join!(activity.ceased(), busy);
        assert_eq!(start.elapsed(), Duration::from_secs(7 * 3600));
    }
}
