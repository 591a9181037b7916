use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use saga_core::Tenant;
use saga_http::status_routes;

use crate::status::fixture::{Shop, send};
use crate::status::stores::{Fresh, on_every_store};

#[derive(Debug, Clone)]
struct LoggedIn(Tenant);

/// The tenant is that of the login. Nothing of another tenant is seen, whatever the request asks for.
async fn a_request_sees_its_own_tenant_only<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    let tenant = |name: &str| Tenant::new(name).unwrap();
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    shop.gate.open(6);
    for (tenant, key) in [(&acme, "order-1"), (&globex, "order-1"), (&globex, "order-2")] {
        let runtime = shop.runtime.tenant(tenant.clone());
        runtime.start(&shop.order, key, 1).await.unwrap().outcome().await.unwrap();
    }
    let of_login = |request: &Parts| Some(request.extensions.get::<LoggedIn>()?.0.clone());
    let app = status_routes(shop.runtime.admin(), |_, _| true).tenant(of_login).into_router();
    let ask = async |path: &str, tenant: Option<&Tenant>| {
        let mut request = Request::get(path).header("x-tenant", "globex");
        if let Some(tenant) = tenant {
            request = request.extension(LoggedIn(tenant.clone()));
        }
        send(&app, request.body(Body::empty()).unwrap()).await
    };
    let own = ask("/sagas/order-1", Some(&acme)).await;
    assert_eq!((own.status, &own.json()["tenant"]), (StatusCode::OK, &"acme".into()));
    assert_eq!(ask("/sagas/order-1", Some(&globex)).await.json()["tenant"], "globex");
    assert_eq!(ask("/sagas/order-2", Some(&acme)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(ask("/sagas/order-2/events", Some(&acme)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(ask("/sagas?tenant=globex", Some(&acme)).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(ask("/sagas", Some(&acme)).await.json()["sagas"].as_array().unwrap().len(), 1);
    for path in ["/sagas/order-1", "/sagas/order-9", "/sagas/order-1/events", "/sagas"] {
        let refused = ask(path, None).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert!(refused.detail().contains("the request belongs to no tenant"));
    }
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_request_sees_its_own_tenant_only,
}
