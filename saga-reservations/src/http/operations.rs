//! The operations on reservations.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use saga_http::Problem;

use super::extract::{Body, KeyInPath, NewKey};
use super::messages::{ConfirmBody, ExtendBody, ReleaseBody, ReserveBody, ReturnBody, ShownReservation};
use super::problem::{problem, refused};
use super::store::Store;
use crate::book::{Action, Operation, Reason, Refusal, ReservationKey};

/// A repeated request gets the same status: a client need not know which of its requests was the first.
pub(super) async fn reserve(
    store: State<Store>,
    NewKey(key): NewKey,
    Body(body): Body<ReserveBody>,
) -> Result<Response, Problem> {
    let location = format!("/v1/reservations/{}", path_segment(key.as_str()));
    let shown = perform(store, key, Action::Reserve(body.into())).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], shown).into_response())
}

pub(super) async fn confirm(
    store: State<Store>,
    KeyInPath(key): KeyInPath,
    Body(body): Body<ConfirmBody>,
) -> Result<Json<ShownReservation>, Problem> {
    perform(store, key, Action::Confirm { token: body.fencing_token, late: body.late() }).await
}

pub(super) async fn release(
    store: State<Store>,
    KeyInPath(key): KeyInPath,
    Body(body): Body<ReleaseBody>,
) -> Result<Json<ShownReservation>, Problem> {
    perform(store, key, Action::Release { token: body.fencing_token }).await
}

pub(super) async fn extend(
    store: State<Store>,
    KeyInPath(key): KeyInPath,
    Body(body): Body<ExtendBody>,
) -> Result<Json<ShownReservation>, Problem> {
    perform(store, key, Action::Extend { token: body.fencing_token, ttl: body.ttl() }).await
}

pub(super) async fn give_back(
    store: State<Store>,
    KeyInPath(key): KeyInPath,
    Body(body): Body<ReturnBody>,
) -> Result<Json<ShownReservation>, Problem> {
    perform(store, key, Action::GiveBack { token: body.fencing_token }).await
}

pub(super) async fn find(
    State(store): State<Store>,
    KeyInPath(key): KeyInPath,
) -> Result<Json<ShownReservation>, Problem> {
    match store.find(&key).await.map_err(|error| problem(&error))? {
        Some(reservation) => Ok(Json(reservation.into())),
        None => Err(refused(&Refusal::new(Reason::NotFound, format!("there is no reservation {key}")))),
    }
}

async fn perform(
    State(store): State<Store>,
    key: ReservationKey,
    action: Action,
) -> Result<Json<ShownReservation>, Problem> {
    let answer = store.perform(Operation::new(key, action)).await;
    answer.map(|reservation| Json(reservation.into())).map_err(|error| problem(&error))
}

/// A text as one segment of a path.
fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@!$'()*,;=".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.extend(format!("%{byte:02X}").chars());
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::path_segment;

    #[test]
    fn a_segment_has_no_slash() {
        assert_eq!(path_segment("trip-7:reserve"), "trip-7:reserve");
        assert_eq!(path_segment("a/b c?ä"), "a%2Fb%20c%3F%C3%A4");
    }
}
