//! A browser without a user: it follows the redirect of the suite's authorization pages.

use reqwest::{Client, header::LOCATION, redirect::Policy};
use url::Url;
use wharf_mcp::oauth::{Browser, Visit};

pub(crate) struct Headless(Client);

impl Headless {
    pub(crate) fn new() -> Result<Headless, reqwest::Error> {
        Client::builder().redirect(Policy::none()).no_proxy().build().map(Headless)
    }
}

impl Browser for Headless {
    /// Returns a URI without a listener: only the redirect target matters.
    fn redirect_uri(&self) -> String {
        "http://localhost:3000/callback".into()
    }

    fn visit(&self, page: Url) -> Visit {
        let request = self.0.get(page.clone());
        Box::pin(async move {
            let response = request.send().await.map_err(|error| error.to_string())?;
            let location = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let location = location.ok_or_else(|| format!("the page answered {}", response.status()))?;
            page.join(location).map_err(|error| error.to_string())
        })
    }
}
