use saga_core::{
    engine::{SagaAdmin, SagaQuery},
    store::Store,
};

use crate::{
    cli::{ActArgs, ServiceName},
    place::Place,
    saga::{create_order, create_order_across_services, payments, shipping},
    shop::ShopConn,
};

/// The desk of a store that is there already, for somebody who says who he is.
pub(super) async fn desk<P: Place>(place: &P, act: &ActArgs) -> anyhow::Result<SagaAdmin<P::Store>> {
    place.look_at_store().await?;
    Ok(desk_of(place.open_store().await?).actor(act.by()))
}

/// The desk of all that this program knows.
pub(super) fn desk_of<S: Store<Conn: ShopConn>>(store: S) -> SagaAdmin<S> {
    let desk = SagaAdmin::new(store).replies_to(ServiceName::Orders.as_str());
    desk.saga(&create_order()).saga(&create_order_across_services()).service(&payments()).service(&shipping())
}

/// What can be asked about all that this program knows.
pub(crate) fn definitions<S: Store<Conn: ShopConn>>(store: S) -> SagaQuery<S> {
    let inspector = SagaQuery::new(store);
    inspector.saga(&create_order()).saga(&create_order_across_services()).service(&payments()).service(&shipping())
}
