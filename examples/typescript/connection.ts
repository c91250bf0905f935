/** Where the examples find the service: `API` and `API_KEY`, as in the README. */

export const baseUrl = process.env['API'] ?? 'http://127.0.0.1:3000';
export const connection = { baseUrl, apiKey: process.env['API_KEY'] };
