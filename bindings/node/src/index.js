export { ApiError } from "./api.js";
export { Cluster } from "./cluster.js";
