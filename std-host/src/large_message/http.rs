//! Stores behind HTTP: how they are made, and a look at every answer.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::config::{BLOB_STORE_URL, BlobStoreConfig, ConfigError};
use super::failure::StatusError;
use super::object::unknown_option;

/// A builder with everything that the environment, the URL and the options say.
macro_rules! build {
    ($builder:ty, $key:ty, $name:literal, $url:expr, $config:expr) => {{
        let timeout = format!("{}ms", $config.timeout.as_millis());
        let mut builder = <$builder>::from_env()
            // Attempts are counted and timed by this crate alone.
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(Connector)
            .with_config(<$key>::Client(ClientConfigKey::Timeout), timeout)
            .with_url($url.as_str());
        for (name, value) in &$config.options {
            let key: $key =
                name.to_ascii_lowercase().parse().map_err(|_| unknown_option(name, $name))?;
            builder = builder.with_config(key, value);
        }
        let store =
            builder.build().map_err(|error| ConfigError::new(BLOB_STORE_URL, error.to_string()))?;
        Ok(Arc::new(store))
    }};
}

/// S3 and what speaks like it.
#[cfg(feature = "s3")]
pub(super) fn s3(url: &Url, config: &BlobStoreConfig) -> Result<Arc<dyn ObjectStore>, ConfigError> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
    build!(AmazonS3Builder, AmazonS3ConfigKey, "S3", url, config)
}

/// Google Cloud Storage.
#[cfg(feature = "gcs")]
pub(super) fn gcs(
    url: &Url,
    config: &BlobStoreConfig,
) -> Result<Arc<dyn ObjectStore>, ConfigError> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
    build!(GoogleCloudStorageBuilder, GoogleConfigKey, "Google Cloud Storage", url, config)
}

/// Azure Blob Storage.
#[cfg(feature = "azure")]
pub(super) fn azure(
    url: &Url,
    config: &BlobStoreConfig,
) -> Result<Arc<dyn ObjectStore>, ConfigError> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
    build!(MicrosoftAzureBuilder, AzureConfigKey, "Azure", url, config)
}

/// Makes clients that tell the status of an answer that another attempt may do better than.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // If the program that this is a part of has chosen one, that is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Telling(client)))
    }
}

/// `object_store` keeps the status to itself, in a type without a name outside of it.
#[derive(Debug)]
struct Telling(HttpClient);

#[async_trait]
impl HttpService for Telling {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.execute(request).await?;
        match response.status().as_u16() {
            status @ (408 | 429 | 500..) => {
                Err(HttpError::new(HttpErrorKind::Unknown, StatusError(status)))
            }
            _ => Ok(response),
        }
    }
}
