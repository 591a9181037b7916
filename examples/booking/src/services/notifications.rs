//! The notification service: it sends mails.

use saga_core::service::ServiceError;
use saga_core::store::Store;
use saga_core::{Service, State, StepContext, StepError, saga_step};

use crate::contracts;
use crate::outside::{MailError, MailServer};
use crate::request::Mail;

/// The service.
pub fn service<S: Store>() -> Result<Service<S>, ServiceError> {
    Service::named("notifications").host::<send_notification>().build()
}

/// Sends the mail. While the server is down, it is tried again; without a mailbox, only an operator can help.
#[saga_step(implements = contracts::send_notification, retry(base = "20ms", cap = "1s"))]
pub async fn send_notification(
    ctx: &StepContext,
    mail: Mail,
    State(server): State<MailServer>,
) -> Result<(), StepError> {
    server.send(ctx.key(), &mail).map_err(|error| match error {
        MailError::Down => StepError::retry(error),
        MailError::NoMailbox(_) => StepError::stuck(error.to_string()),
    })
}
