//! Arguments that several commands with a stand have.

use clap::Args;
use kube::api::DynamicObject;

use super::{program::OperatorCommand, webhooks::WebhookPort};

/// Where webhooks are served.
#[derive(Args, Debug)]
pub(crate) struct WebhookArgs {
    /// The port on which the program serves its webhooks, such as 9443; or {webhook-port} in its arguments, for another one in each
    /// run. Without either they are not called, but for a project in Rust, whose program is given one
    #[arg(long, value_name = "PORT")]
    webhook_port: Option<u16>,
}

impl WebhookArgs {
    /// Where the webhooks of these objects are served by a program; none where nobody says it.
    pub(crate) fn port(&self, needed: &[DynamicObject], command: &OperatorCommand) -> Option<WebhookPort> {
        WebhookPort::choose(self.webhook_port, needed, command)
    }
}
