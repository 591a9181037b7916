//! The messages that could not be handled, to read only.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use saga_core::store::{DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState};
use serde_json::json;

use super::dead_letter::{in_full, in_list};
use super::parameters::Parameters;
use super::schema;
use super::service::{Service, failed};
use super::view::name_in_path;
use crate::Problem;

/// A page of messages that could not be handled, oldest first.
#[utoipa::path(
    get,
    path = "/dead-letters",
    tag = "dead letters",
    params(
        ("state" = Option<String>, Query, description = "`open`, which is the default, `replayed`, `discarded` or `all`"),
        ("reason" = Option<String>, Query, description = "Only letters with this reason"),
        ("after" = Option<String>, Query, description = "The `next` of the page before"),
        ("limit" = Option<u16>, Query, description = "The most entries of the page, 100 by default", minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "The page; it may have fewer entries than `limit`, and goes on if `next` is not null", body = schema::DeadLetterPage),
        (status = 400, description = "A parameter is unknown or cannot be read", body = schema::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request belongs to no tenant", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store does not answer", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "In how many seconds the client may try again"))),
    )
)]
pub(super) async fn dead_letters(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let parameters = Parameters::of(&parts, &["state", "reason", "after", "limit"])?;
    let state = parameters.one_of("state", "open, replayed, discarded, all", |text| match text {
        "all" => Some(None),
        text => DeadLetterState::parse(text).map(Some),
    })?;
    let filter = DeadLetterFilter {
        state: state.unwrap_or(Some(DeadLetterState::Open)),
        reason: parameters.one_of(
            "reason",
            "the reasons that letters have, such as unreadable",
            DeadLetterReason::parse,
        )?,
        after: parameters.after()?.map(DeadLetterId),
        limit: parameters.limit()?,
        ..DeadLetterFilter::default()
    };
    let limit = filter.limit;
    let letters = service.view(&parts)?.sagas.dead_letters(filter).await.map_err(|error| failed(&error))?;
    let next = letters.last().filter(|_| letters.len() == limit).map(|letter| letter.letter.id.0.to_string());
    let shown: Vec<_> = letters.iter().filter(|letter| may_see(&service, &parts, letter)).map(in_list).collect();
    Ok(Json(json!({ "dead_letters": shown, "next": next })).into_response())
}

/// A message that could not be handled, with its content.
#[utoipa::path(
    get,
    path = "/dead-letters/{id}",
    tag = "dead letters",
    params(("id" = i64, Path, description = "The id of the letter")),
    responses(
        (status = 200, description = "The letter", body = schema::DeadLetter),
        (status = 400, description = "A parameter is unknown or cannot be read", body = schema::Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request belongs to no tenant", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such letter that the client may see", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store does not answer", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "In how many seconds the client may try again"))),
    )
)]
pub(super) async fn dead_letter(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let id = name_in_path(&mut parts).await?;
    Parameters::of(&parts, &[])?;
    let wrong = |_| Problem::new(StatusCode::BAD_REQUEST, format!("`{id}` is no id of a dead letter; it is a number"));
    let number: i64 = id.parse().map_err(wrong)?;
    let sagas = service.view(&parts)?.sagas;
    let letter = sagas.dead_letter(DeadLetterId(number)).await.map_err(|error| failed(&error))?;
    let unknown = || Problem::new(StatusCode::NOT_FOUND, format!("there is no dead letter {number}"));
    let letter = letter.filter(|letter| may_see(&service, &parts, letter)).ok_or_else(unknown)?;
    Ok(Json(in_full(&letter)).into_response())
}

fn may_see(service: &Service, parts: &Parts, letter: &DeadLetter) -> bool {
    service.may_see_letter.as_ref().is_some_and(|may_see| may_see(parts, letter))
}
