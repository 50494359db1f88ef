//! DPoP (RFC 9449): binds tokens to a key, and proves with every request that we have the key.

use super::{Secret, lock};
use crate::Failure;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL};
use serde_json::{Value, json};
use std::{
    fmt,
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};
use url::Url;

/// The header of a request that carries the proof.
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The header of a response that carries the nonce for the next proof.
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The error code of a server that requires a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

/// Signing algorithm of the proofs.
pub(super) const ALGORITHM: &str = "ES256";

/// Number of random bytes in the id of a proof.
const PROOF_ID_BYTES: usize = 16;

/// A private key that tokens are bound to.
pub(super) struct DpopKey {
    pair: EcdsaKeyPair,
    /// The key in PKCS #8, encoded for the token store.
    stored: Secret,
    /// First part of every proof, encoded.
    header: String,
    thumbprint: String,
}

impl DpopKey {
    pub(super) fn generate() -> Result<DpopKey, Failure> {
        let generated = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok();
        let key = generated.and_then(|pair| {
            let stored = BASE64URL.encode(pair.to_pkcs8v1().ok()?.as_ref());
            DpopKey::new(pair, stored)
        });
        key.ok_or_else(|| Failure::connect("could not create a DPoP key"))
    }

    /// Reads a key from the token store. Returns `None` if it is not one.
    pub(super) fn from_stored(stored: &str) -> Option<DpopKey> {
        let pkcs8 = BASE64URL.decode(stored).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).ok()?;
        DpopKey::new(pair, stored.to_owned())
    }

    fn new(pair: EcdsaKeyPair, stored: String) -> Option<DpopKey> {
        // The public key is an uncompressed point: a prefix byte and two coordinates of the same length.
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let (x, y) = (BASE64URL.encode(x), BASE64URL.encode(y));
        // RFC 7638: the required members in lexicographic order, without whitespace.
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let jwk: Value = serde_json::from_str(&canonical).ok()?;
        let header = json!({ "typ": "dpop+jwt", "alg": ALGORITHM, "jwk": jwk });
        Some(DpopKey {
            pair,
            stored: Secret::new(stored),
            header: BASE64URL.encode(header.to_string()),
            thumbprint: hash(&canonical),
        })
    }

    /// Returns the key in the form that [`DpopKey::from_stored`] reads.
    pub(super) fn stored(&self) -> &str {
        self.stored.reveal()
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    pub(super) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Signs a proof for one request. `token_hash` is the hash of the token that the request carries, if it does.
    pub(super) fn proof(
        &self,
        method: &Method,
        url: &Url,
        token_hash: Option<&str>,
        nonce: Option<&str>,
    ) -> Result<HeaderValue, Failure> {
        let unsigned = || Failure::connect("could not sign a DPoP proof");
        let mut id = [0; PROOF_ID_BYTES];
        getrandom::fill(&mut id).map_err(|_| unsigned())?;
        let issued_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut claims = json!({
            "jti": BASE64URL.encode(id), "htm": method.as_str(), "htu": target(url), "iat": issued_at,
        });
        token_hash.into_iter().for_each(|hash| claims["ath"] = hash.into());
        nonce.into_iter().for_each(|nonce| claims["nonce"] = nonce.into());
        let signed = format!("{}.{}", self.header, BASE64URL.encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| unsigned())?;
        let proof = format!("{signed}.{}", BASE64URL.encode(signature.as_ref()));
        let mut proof = HeaderValue::try_from(proof).map_err(|_| unsigned())?;
        proof.set_sensitive(true);
        Ok(proof)
    }
}

/// Returns the URL as a proof contains it: without credentials, query and fragment.
fn target(url: &Url) -> String {
    let mut target = url.clone();
    target.set_query(None);
    target.set_fragment(None);
    // These fail only for URLs that cannot have credentials.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    target.into()
}

/// Returns the SHA-256 hash of a text, encoded as proofs and thumbprints contain it.
pub(super) fn hash(text: &str) -> String {
    BASE64URL.encode(digest(&SHA256, text.as_bytes()))
}

/// Prints the public key only.
impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

/// The most recent nonce of one server. Every response may replace it.
#[derive(Debug, Default)]
pub(super) struct NonceCache(Mutex<Option<String>>);

impl NonceCache {
    pub(super) fn current(&self) -> Option<String> {
        lock(&self.0).clone()
    }

    /// Stores the nonce of a response, if it has one, and returns it.
    pub(super) fn read(&self, headers: &HeaderMap) -> Option<String> {
        let nonce = headers.get(&DPOP_NONCE)?.to_str().ok()?;
        *lock(&self.0) = Some(nonce.to_owned());
        Some(nonce.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    /// Verifies a proof with the public key that it contains. Returns its header and its claims.
    fn verify(proof: &HeaderValue) -> (Value, Value) {
        let text = proof.to_str().unwrap();
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let decode = |part: &str| BASE64URL.decode(part).unwrap();
        let header: Value = serde_json::from_slice(&decode(header)).unwrap();
        let coordinate = |name: &str| decode(header["jwk"][name].as_str().unwrap());
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed.as_bytes(), &decode(signature)).unwrap();
        (header, serde_json::from_slice(&decode(claims)).unwrap())
    }

    #[test]
    fn a_proof_names_its_request_and_contains_only_the_public_key() {
        let key = DpopKey::generate().unwrap();
        let url = "https://me:secret@mcp.example/mcp?key=1#top".parse().unwrap();
        let proof = key.proof(&Method::POST, &url, Some(&hash("token")), Some("n-1")).unwrap();
        let (header, claims) = verify(&proof);
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"].as_object().unwrap().len(), 4, "no private part: {header}");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://mcp.example/mcp");
        assert_eq!(claims["nonce"], "n-1");
        // SHA-256 of `token`.
        assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(now.abs_diff(claims["iat"].as_u64().unwrap()) < 60, "{claims}");
        assert!(proof.is_sensitive());
    }

    #[test]
    fn every_proof_has_its_own_id_and_optional_claims_stay_out() {
        let key = DpopKey::generate().unwrap();
        let url = "https://as.example/token".parse().unwrap();
        let claims: Vec<Value> =
            (0..50).map(|_| verify(&key.proof(&Method::POST, &url, None, None).unwrap()).1).collect();
        let ids: std::collections::HashSet<&str> =
            claims.iter().map(|it| it["jti"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), claims.len());
        assert!(claims.iter().all(|it| it.get("ath").is_none() && it.get("nonce").is_none()));
    }

    #[test]
    fn a_stored_key_is_the_same_key() {
        let key = DpopKey::generate().unwrap();
        let again = DpopKey::from_stored(key.stored()).unwrap();
        assert_eq!(key.thumbprint(), again.thumbprint());
        assert_ne!(key.thumbprint(), DpopKey::generate().unwrap().thumbprint());
        let (header, _) =
            verify(&again.proof(&Method::GET, &"http://x/".parse().unwrap(), None, None).unwrap());
        // RFC 7638, computed from the members of the proof.
        let jwk = &header["jwk"];
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, jwk["x"], jwk["y"]);
        assert_eq!(hash(&canonical), key.thumbprint());
        assert!(DpopKey::from_stored("nonsense").is_none());
        assert!(!format!("{key:?}").contains(key.stored()));
    }
}
