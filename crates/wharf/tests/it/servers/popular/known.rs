//! Facts about each server of the client's file, in the same order.

pub(super) struct KnownServer {
    /// Name in the client's file.
    pub(super) name: &'static str,
    /// Description in a few words.
    pub(super) about: &'static str,
    /// Requirements beyond the package, for the page.
    pub(super) needs: &'static str,
    pub(super) coverage: TestCoverage,
}

pub(super) enum TestCoverage {
    /// The tests start it, and it lists this many tools.
    Started { tools: usize },
    /// Only checked and explained, because starting it would contact an external service.
    Checked { why: &'static str },
}

const fn starts(name: &'static str, tools: usize, about: &'static str, needs: &'static str) -> KnownServer {
    KnownServer { name, about, needs, coverage: TestCoverage::Started { tools } }
}

const fn checked(
    name: &'static str,
    why: &'static str,
    about: &'static str,
    needs: &'static str,
) -> KnownServer {
    KnownServer { name, about, needs, coverage: TestCoverage::Checked { why } }
}

const NOTHING: &str = "nothing";

pub(super) const KNOWN: &[KnownServer] = &[
    starts("filesystem", 14, "files in folders that you name", "folders that exist, at the end of `args`"),
    starts(
        "memory",
        9,
        "a graph of what is to be remembered",
        "nothing; `MEMORY_FILE_PATH` says where it is kept",
    ),
    starts("everything", 13, "one of everything in MCP, for tests", NOTHING),
    starts("sequential-thinking", 1, "thinking step by step", NOTHING),
    starts(
        "github",
        26,
        "repositories, issues, pull requests",
        "`GITHUB_PERSONAL_ACCESS_TOKEN` for calls; it lists its tools without",
    ),
    starts(
        "postgres",
        1,
        "read-only SQL",
        "a database URL at the end of `args`; the database itself for calls and resources",
    ),
    starts("slack", 8, "channels and messages", "`SLACK_BOT_TOKEN` and `SLACK_TEAM_ID`"),
    starts("brave-search", 2, "web search", "`BRAVE_API_KEY`"),
    starts("context7", 2, "documentation of libraries", "the network for calls"),
    starts("playwright", 25, "a browser", "a browser for calls: `npx playwright install chromium`"),
    starts(
        "chrome-devtools",
        32,
        "Chrome and its developer tools",
        "Chrome for calls; `--no-usage-statistics` keeps it from reporting to Google",
    ),
    starts("notion", 24, "pages and databases of Notion", "`NOTION_TOKEN` for calls"),
    starts("tavily", 5, "web search", "`TAVILY_API_KEY` for all but search and extract"),
    starts(
        "firecrawl",
        29,
        "web pages as text",
        "`FIRECRAWL_API_KEY`; without, 27 tools and few of them work",
    ),
    starts("sentry", 9, "errors and issues of Sentry", "`SENTRY_ACCESS_TOKEN`"),
    starts(
        "figma",
        2,
        "designs of Figma",
        "`FIGMA_API_KEY` and `--stdio`; `FRAMELINK_TELEMETRY: \"off\"` keeps it from reporting",
    ),
    starts(
        "azure",
        61,
        "resources of Azure",
        "an `az login` for calls; the two variables keep it from reporting to Microsoft",
    ),
    checked(
        "browsermcp",
        "it kills whatever uses port 9009 when it starts",
        "the browser that you have open",
        "its browser extension for calls; nothing of yours on port 9009",
    ),
    starts("excel", 6, "Excel files", NOTHING),
    starts("exa", 2, "web search", "`EXA_API_KEY` for calls"),
    starts(
        "n8n",
        7,
        "nodes and workflows of n8n",
        "nothing; `N8N_API_URL` and `N8N_API_KEY` for your own workflows",
    ),
    starts(
        "mongodb",
        18,
        "MongoDB and Atlas",
        "`MDB_MCP_CONNECTION_STRING` for calls; its package takes 400 MB",
    ),
    starts("kubernetes", 20, "a Kubernetes cluster", "a kubeconfig with a context"),
    checked(
        "supabase",
        "it calls Supabase when it starts",
        "projects of Supabase",
        "`SUPABASE_ACCESS_TOKEN` and the network",
    ),
    checked("stripe", "it calls Stripe when it starts", "payments of Stripe", "`--api-key` and the network"),
    checked(
        "magic",
        "it calls 21st.dev when it starts",
        "components of user interfaces",
        "`API_KEY` and the network",
    ),
    checked(
        "desktop-commander",
        "it reports to its authors when it starts",
        "the terminal and the files of your machine",
        "the network",
    ),
    starts("time", 2, "the time in time zones", NOTHING),
    starts("git", 12, "a Git repository", "a repository that exists, after `--repository`"),
    starts("fetch", 1, "web pages as Markdown", "the network for calls"),
    starts(
        "sqlite",
        6,
        "a SQLite database",
        "`--with \"mcp<2\"`: it was written for version 1 of the MCP SDK",
    ),
    checked(
        "docker",
        "it needs Python 3.12 and Docker",
        "containers and images",
        "Python 3.12 (`--python`; uv downloads it) and a running Docker",
    ),
    checked(
        "qdrant",
        "it loads a model from the network when it starts",
        "a vector database",
        "`QDRANT_URL`, `COLLECTION_NAME` and the network",
    ),
    starts("aws-documentation", 5, "the documentation of AWS", "the network for calls"),
    starts("duckduckgo", 3, "web search", "the network for calls"),
    starts("markitdown", 1, "documents as Markdown", NOTHING),
    starts(
        "obsidian",
        15,
        "notes of Obsidian",
        "`OBSIDIAN_API_KEY`, and Obsidian with its REST plugin for calls",
    ),
    starts("elevenlabs", 27, "speech and sound", "`ELEVENLABS_API_KEY`"),
    checked(
        "basic-memory",
        "it needs Python 3.12, and reaches for the network when it starts",
        "notes that are to be remembered",
        "Python 3.12 (`--python`; uv downloads it)",
    ),
];
