"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();
const place = (operation) => (operation.get("path").startsWith("/v1/jobs/train") ? 0 : 1); // trainings first
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  operationsSorter: (one, other) => place(one) - place(other),
  requestSnippetsEnabled: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
