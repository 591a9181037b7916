use std::process::ExitCode;

use anyhow::{Context, bail};

use super::{host::host, log::log_to_stderr, orders::orders};
use crate::{
    cli::{ServiceArgs, ServiceName},
    outside::{Carrier, Gateway, Outside},
    place::{Place, connect_transport},
    saga::{payments, shipping},
};

/// Runs a service until it is asked to end; or, with orders, until they have ended.
///
/// # Errors
///
/// A sentence, when it could not be done. What was begun goes on when the service runs again, or in another replica.
///
/// # Cancel safety
///
/// What was begun goes on when the service runs again, or in another replica.
pub async fn service(place: &impl Place, args: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let name = args.service;
    if let (ServiceName::Payments | ServiceName::Shipping, Some(flag)) = (name, args.orders_only()) {
        bail!("{flag} is for the service orders; {name} does what that one asks for");
    }
    log_to_stderr();
    let outside = outside(args).await?;
    let transport = args.transport.as_deref().unwrap_or("memory:");
    let Some(transport) = connect_transport(transport).await? else {
        bail!("a service talks to the others by a broker: give it --transport amqp://user:password@host:port/vhost");
    };
    match (name, outside) {
        (ServiceName::Orders, outside) => orders(place, args, transport, outside).await,
        (ServiceName::Payments, Some(outside)) => {
            host(place, args, transport, |runtime| runtime.service(&payments()).state(Gateway(outside))).await
        }
        (ServiceName::Shipping, Some(outside)) => {
            host(place, args, transport, |runtime| runtime.service(&shipping()).state(Carrier(outside))).await
        }
        (_, None) => bail!(
            "the service {name} calls the services outside: give it --outside URL, as `order-saga outside` prints it"
        ),
    }
}

/// The services outside, if they were given: they must answer.
async fn outside(args: &ServiceArgs) -> anyhow::Result<Option<Outside>> {
    let Some(url) = &args.outside else { return Ok(None) };
    let outside = Outside::at(url)?;
    outside.tally().await.context("the services outside do not answer")?;
    Ok(Some(outside))
}
