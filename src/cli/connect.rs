//! The way to a server.

use std::path::Path;

use apibinding::shell::Server;
use http::Uri;
use kube::Client;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};

use super::args::ConnectArgs;
use super::failure::Failure;

/// The server, and where its global copies are.
pub async fn connect(args: &ConnectArgs) -> Result<(Server, Option<Server>), Failure> {
    let server = of_args(args).await?;
    let cache = match args.cache_server.as_str() {
        "server" => Some(server.clone()),
        "none" => None,
        path => Some(of_kubeconfig(Some(path.into()), None).await?),
    };
    Ok((server, cache))
}

async fn of_args(args: &ConnectArgs) -> Result<Server, Failure> {
    let Some(url) = args.server.clone() else {
        return of_kubeconfig(args.kubeconfig.clone(), args.context.clone()).await;
    };
    let token_file = args.token_file.as_ref().map(|path| path.to_string_lossy().into_owned());
    let authority = args.certificate_authority.clone();
    renewable(move || {
        let (url, token_file, authority) = (url.clone(), token_file.clone(), authority.clone());
        async move {
            let mut config = Config::new(url);
            if let Some(path) = &token_file {
                // kube reads it later, and says less about it.
                read(Path::new(path))?;
            }
            config.auth_info = AuthInfo { token_file, ..AuthInfo::default() };
            config.root_cert_file = authority;
            if let Some(path) = &config.root_cert_file {
                read(path)?;
            }
            Ok(config)
        }
    })
    .await
}

async fn of_kubeconfig(path: Option<std::path::PathBuf>, context: Option<String>) -> Result<Server, Failure> {
    renewable(move || {
        let (path, context) = (path.clone(), context.clone());
        async move {
            let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
            match &path {
                Some(path) => {
                    let wrong = |why: &dyn std::fmt::Display| format!("the kubeconfig {}: {why}", path.display());
                    let kubeconfig = Kubeconfig::read_from(path).map_err(|why| wrong(&why))?;
                    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|why| wrong(&why))
                }
                // Who names a context means a kubeconfig.
                None if context.is_some() => Config::from_kubeconfig(&options).await.map_err(|why| why.to_string()),
                None => Config::infer()
                    .await
                    .map_err(|why| format!("no way to a server: say --kubeconfig, or --server ({why})")),
            }
        }
    })
    .await
}

/// A server whose credentials are read again when it does not know them any more.
async fn renewable<F, R>(config: F) -> Result<Server, Failure>
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<Config, String>> + Send + 'static,
{
    let first = client(config().await.map_err(Failure::Connection)?).map_err(Failure::Connection)?;
    Ok(Server::renewed_by(first, move || {
        let config = config();
        async move { client(config.await?) }
    }))
}

fn client(mut config: Config) -> Result<Client, String> {
    // When to try again is the controller's business.
    config.default_retry = false;
    config.cluster_url = without_cluster(&config.cluster_url)?;
    Client::try_from(config).map_err(|why| why.to_string())
}

/// The address of a server, of which a kubeconfig often has one logical cluster only.
fn without_cluster(url: &Uri) -> Result<Uri, String> {
    let mut parts = url.clone().into_parts();
    if parts.scheme.is_none() || parts.authority.is_none() {
        return Err(format!("the server's address `{url}` is none: it has to be like https://127.0.0.1:6443"));
    }
    let path = url.path();
    let end = ["/clusters/", "/services/"].into_iter().filter_map(|part| path.find(part)).min();
    let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path };
    parts.path_and_query = Some(path.parse().map_err(|why| format!("the server's address `{url}`: {why}"))?);
    Uri::from_parts(parts).map_err(|why| format!("the server's address `{url}`: {why}"))
}

fn read(path: &Path) -> Result<(), String> {
    std::fs::read(path).map(drop).map_err(|why| format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expect: &str) {
        assert_eq!(without_cluster(&url.parse().unwrap()).unwrap().to_string(), expect);
    }

    #[test]
    fn all_logical_clusters_are_meant() {
        check("https://127.0.0.1:6443", "https://127.0.0.1:6443/");
        check("https://kcp.example:6443/clusters/root:meadow", "https://kcp.example:6443/");
        check("https://kcp.example/kcp/clusters/root", "https://kcp.example/kcp");
        check("https://kcp.example/services/cache/shards/root/clusters/root", "https://kcp.example/");
        assert!(without_cluster(&"kcp.example".parse().unwrap()).unwrap_err().contains("like https://"));
    }
}
