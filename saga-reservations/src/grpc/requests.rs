//! What the server received.

use std::time::Duration;

use super::v1;
use crate::book::{Late, Reason, Refusal, Reserve};

pub(super) fn reserve(message: v1::ReserveRequest) -> Reserve {
    let lines = message.lines.into_iter().map(|line| (line.resource, line.quantity));
    let request = Reserve::of_lines(lines).ttl(Duration::from_millis(message.ttl_millis));
    if message.unique { request.once() } else { request }
}

pub(super) fn late(message: &v1::ConfirmRequest) -> Result<Late, Refusal> {
    match v1::Late::try_from(message.late) {
        Ok(v1::Late::Unspecified | v1::Late::Refuse) => Ok(Late::Refuse),
        Ok(v1::Late::IfFree) => Ok(Late::IfFree),
        Err(_) => {
            let problem = format!("`late` is {}; send LATE_REFUSE or LATE_IF_FREE", message.late);
            Err(Refusal::new(Reason::Invalid, problem))
        }
    }
}
