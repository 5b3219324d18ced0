// Requests to the paths below /kubewright, as the administrator of a kubeconfig.
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { parse } from "yaml";

/** The server refused a request to /kubewright. */
export class ApiError extends Error {
  constructor(status, message) {
    super(`${status}: ${message}`);
    this.name = "ApiError";
    this.status = status;
  }
}

export class Api {
  constructor(kubeconfig) {
    const config = parse(readFileSync(kubeconfig, "utf8"));
    const { server, "certificate-authority-data": authority } = config.clusters[0].cluster;
    this.server = server;
    this.token = config.users[0].user.token;
    this.agent = new Agent({ keepAlive: true, ca: Buffer.from(authority, "base64") });
  }

  /** The JSON that the server answers with; undefined where it answers nothing. */
  async request(method, path, body, query) {
    const url = new URL(`/kubewright${path}`, this.server);
    for (const [key, value] of Object.entries(query ?? {})) url.searchParams.set(key, String(value));
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const { status, text } = await new Promise((resolve, reject) => {
      const sent = request(url, { method, headers, agent: this.agent }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString("utf8") }));
        response.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
    const answer = read(text);
    if (status >= 400) throw new ApiError(status, answer?.message ?? text.trim());
    return answer;
  }

  close() {
    this.agent.destroy();
  }
}

function read(text) {
  try {
    return text.trim() ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
