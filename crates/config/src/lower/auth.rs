//! Lowers `auth:` of a remote entry.

use super::tool::CLASS;
use crate::{
    diagnostic::Diagnostics,
    env::Env,
    masked_string::MaskedString,
    oauth::{
        ClientCredential, GrantType, IdpSettings, OAuthGrant, OAuthSettings, SigningAlgorithm, TokenOrigin,
    },
    place::{Place, PlacedString},
    raw::{Field, RawAuth, RawIdp},
    read::Reader,
    url::{is_insecure, parse_http_url},
};
use std::path::{Path, PathBuf};
use url::Url;

/// Values of `auth.type`.
const TYPES: &[&str] = &["oauth"];

/// Reads the fields of one grant. `at` is the place of `auth`.
struct GrantReader<'a> {
    at: Place,
    grant: GrantType,
    env: &'a Env,
    reader: Reader<'a>,
}

/// Lowers the sign-in settings. `None` means that a diagnostic was recorded.
pub(super) fn auth(field: Field, env: &Env, diagnostics: &mut Diagnostics) -> Option<OAuthSettings> {
    let at = field.key_at;
    let mut raw = RawAuth::read(field.node, diagnostics)?;
    let mut reader = Reader { class: CLASS, diagnostics };
    reader.keyword("auth.type", raw.kind.take(), TYPES, |it| TYPES.contains(&it).then_some(()));
    let dpop = reader.flag("auth.dpop", raw.dpop.take()).unwrap_or(false);
    let scopes = scopes(raw.scopes.take(), &mut reader);
    let issuer = raw.issuer.take().map(|it| https_url("auth.issuer", it, env, &mut reader));
    let grant = match raw.grant.take() {
        None => GrantType::AuthorizationCode,
        field => reader.keyword("auth.grant", field, GrantType::KEYWORDS, GrantType::parse)?,
    };
    let grant = GrantReader { at, grant, env, reader }.read(raw)?;
    let issuer = match issuer {
        Some(issuer) => Some(issuer?.0.value.expose().to_owned()),
        None => None,
    };
    Some(OAuthSettings { grant, scopes, issuer, dpop })
}

impl GrantReader<'_> {
    fn read(mut self, raw: RawAuth) -> Option<OAuthGrant> {
        #[rustfmt::skip]
        let RawAuth {
            kind: _, grant: _, scopes: _, issuer: _, dpop: _, client_id, client_secret, private_key, signing_algorithm,
            token, token_file, id_token, id_token_file, idp,
        } = raw;
        self.reject_unused(&[
            ("client_secret", &client_secret),
            ("private_key", &private_key),
            ("signing_algorithm", &signing_algorithm),
            ("token", &token),
            ("token_file", &token_file),
            ("id_token", &id_token),
            ("id_token_file", &id_token_file),
            ("idp", &idp),
        ]);
        let has_secret = client_secret.is_some();
        let client_id = self.text("client_id", client_id);
        let client_secret = self.secret("client_secret", client_secret);
        Some(match self.grant {
            GrantType::AuthorizationCode => {
                if has_secret && client_id.is_none() {
                    self.required("client_id", None::<()>);
                }
                OAuthGrant::AuthorizationCode { client_id, client_secret }
            }
            GrantType::ClientCredentials => {
                let client_id = self.required("client_id", client_id);
                let credential = self.credential(client_secret, private_key, signing_algorithm);
                OAuthGrant::ClientCredentials { client_id: client_id?, credential: credential? }
            }
            GrantType::WorkloadIdentity => {
                let token = self.token(["token", "token_file"], token, token_file)?;
                OAuthGrant::WorkloadIdentity { client_id, token }
            }
            GrantType::Enterprise => {
                let client_id = self.required("client_id", client_id);
                let id_token = self.token(["id_token", "id_token_file"], id_token, id_token_file);
                let idp = self.required("idp", idp);
                let idp = idp.and_then(|it| self.idp(it));
                let (client_id, id_token, idp) = (client_id?, id_token?, Box::new(idp?));
                OAuthGrant::Enterprise { client_id, client_secret, id_token, idp }
            }
        })
    }

    fn reject_unused(&mut self, fields: &[(&str, &Option<Field>)]) {
        for (key, field) in fields.iter().filter(|(key, _)| !self.grant.used_keys().contains(key)) {
            if let Some(field) = field {
                self.reader.diagnostics.unused_auth_key(field.key_at, key, self.grant);
            }
        }
    }

    fn required<T>(&mut self, key: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.reader.diagnostics.missing_auth_key(self.at, key, self.grant);
        }
        value
    }

    fn text(&mut self, key: &str, field: Option<Field>) -> Option<MaskedString> {
        let text = self.reader.text(&format!("auth.{key}"), field)?;
        if text.value.is_blank() {
            self.reader.diagnostics.empty_auth_value(text.at, key);
        }
        Some(text.value)
    }

    /// Reads a secret. A literal one has no form that may be shown.
    fn secret(&mut self, key: &str, field: Option<Field>) -> Option<MaskedString> {
        let text = self.text(key, field)?;
        Some(if text.is_secret() { text } else { MaskedString::secret(text.expose(), "***") })
    }

    fn credential(
        &mut self,
        secret: Option<MaskedString>,
        private_key: Option<Field>,
        algorithm: Option<Field>,
    ) -> Option<ClientCredential> {
        let at = algorithm.as_ref().map(|it| it.key_at);
        let algorithm = self.reader.keyword(
            "auth.signing_algorithm",
            algorithm,
            SigningAlgorithm::KEYWORDS,
            SigningAlgorithm::parse,
        );
        let private_key = self.secret("private_key", private_key);
        match (secret, private_key) {
            (Some(secret), None) => {
                let unused = |at| self.reader.diagnostics.algorithm_without_key(at);
                at.into_iter().for_each(unused);
                Some(ClientCredential::Secret(secret))
            }
            (None, Some(key)) => {
                Some(ClientCredential::PrivateKey(key, algorithm.unwrap_or(SigningAlgorithm::Es256)))
            }
            (secret, _) => {
                let keys = ["client_secret", "private_key"];
                self.reader.diagnostics.needs_one_auth_key(self.at, keys, secret.is_some(), self.grant);
                None
            }
        }
    }

    /// Reads a token, which the entry contains or which is in a file.
    fn token(
        &mut self,
        keys: [&'static str; 2],
        text: Option<Field>,
        file: Option<Field>,
    ) -> Option<TokenOrigin> {
        match (text, file) {
            (Some(text), None) => self.secret(keys[0], Some(text)).map(TokenOrigin::Text),
            (None, Some(file)) => {
                let key = format!("auth.{}", keys[1]);
                let path = self.reader.text(&key, Some(file))?;
                self.locate_token(&key, &path).map(TokenOrigin::File)
            }
            (text, _) => {
                self.reader.diagnostics.needs_one_auth_key(self.at, keys, text.is_some(), self.grant);
                None
            }
        }
    }

    /// Finds a token's file. It is in the folder of the agent file, or the operator has granted it.
    fn locate_token(&mut self, key: &str, path: &PlacedString) -> Option<PathBuf> {
        let written = Path::new(path.value.expose());
        let error = match self.env.files.locate(path.value.expose()) {
            Ok(_) => return self.stable_path(written),
            Err(error) => error,
        };
        if self.env.grants.allows_token_file(written) {
            return Some(written.to_owned());
        }
        let diagnostics = &mut *self.reader.diagnostics;
        match written.is_absolute() {
            true => diagnostics.token_file_not_granted(path.at, key, &path.value),
            false => diagnostics.file_error(path.at, CLASS, key, &path.value, &error),
        }
        None
    }

    /// Returns a path that stays valid when the platform replaces the file: only the folder's links are resolved.
    fn stable_path(&self, written: &Path) -> Option<PathBuf> {
        let folder = written.parent().filter(|it| *it != Path::new("")).unwrap_or(Path::new("."));
        let folder = self.env.files.locate(folder.to_str()?).ok()?;
        Some(folder.join(written.file_name()?))
    }

    fn idp(&mut self, field: Field) -> Option<IdpSettings> {
        let at = field.key_at;
        let RawIdp { token_endpoint, client_id, client_secret } =
            RawIdp::read(field.node, self.reader.diagnostics)?;
        let client_id = self.text("idp.client_id", client_id);
        let client_secret = self.secret("idp.client_secret", client_secret);
        let Some(token_endpoint) = token_endpoint else {
            self.reader.diagnostics.missing_auth_key(at, "idp.token_endpoint", self.grant);
            return None;
        };
        let (_, token_endpoint) =
            https_url("auth.idp.token_endpoint", token_endpoint, self.env, &mut self.reader)?;
        Some(IdpSettings { token_endpoint, client_id, client_secret })
    }
}

/// Reads a URL that receives credentials: https, or http to this machine.
fn https_url(key: &str, field: Field, env: &Env, reader: &mut Reader<'_>) -> Option<(PlacedString, Url)> {
    let text = reader.text(key, Some(field))?;
    let url = parse_http_url(text.value.expose());
    let url = url.filter(|it| !is_insecure(it, env) && it.username().is_empty() && it.fragment().is_none());
    let Some(url) = url else {
        reader.diagnostics.invalid_auth_url(text.at, key);
        return None;
    };
    Some((text, url))
}

fn scopes(field: Option<Field>, reader: &mut Reader<'_>) -> Vec<String> {
    let Some(scopes) = reader.texts("auth.scopes", field) else { return Vec::new() };
    let is_scope =
        |it: &str| !it.is_empty() && it.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'));
    let (valid, invalid): (Vec<_>, Vec<_>) =
        scopes.value.into_iter().partition(|it| is_scope(it.value.expose()));
    for scope in invalid {
        reader.diagnostics.invalid_scope(scope.at);
    }
    valid.into_iter().map(|it| it.value.expose().to_owned()).collect()
}
