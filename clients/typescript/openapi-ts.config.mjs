import { defineConfig } from "@hey-api/openapi-ts";

const DOCUMENT = "../../services/reverie_services/recall/routes/openapi.json";

export default defineConfig({
  input: process.env.REVERIE_OPENAPI ?? DOCUMENT,
  output: { path: "src/generated", importFileExtension: ".js" },
  plugins: [
    { name: "@hey-api/client-fetch", throwOnError: true },
    "@hey-api/typescript",
    {
      name: "@hey-api/sdk",
      operations: { strategy: "single", containerName: "Operations" },
      responseStyle: "data",
      auth: true,
    },
  ],
});
