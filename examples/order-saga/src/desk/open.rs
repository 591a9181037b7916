use saga_core::engine::SagaDesk;

use crate::{
    cli::{ActArgs, ServiceName},
    place::Place,
    saga::{create_order, create_order_across_services, payments, shipping},
};

/// The desk of a store that is there already, for somebody who says who he is.
pub(super) async fn desk<P: Place>(place: &P, act: &ActArgs) -> anyhow::Result<SagaDesk<P::Store>> {
    place.look_at_store().await?;
    let desk = SagaDesk::new(place.open_store().await?).by(act.by()).replies_to(ServiceName::Orders.as_str());
    Ok(desk.saga(&create_order()).saga(&create_order_across_services()).service(&payments()).service(&shipping()))
}
